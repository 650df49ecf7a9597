# Hashes, strings, threads, a fork and big numbers.
table = {}
200_000.times { |i| table[i * 7919 % 100_003] = "x" * (i % 150) }
puts table.size, table.values.sum(&:size)
threads = 4.times.map { |t| Thread.new { (1..20_000).map { |i| (i * t).to_s }.join.size } }
puts threads.map(&:value).inspect
puts (1..800).inject(:*).to_s.size
pid = fork { exit!(5) }
Process.wait(pid)
puts $?.exitstatus
table = nil
GC.start
GC.compact if GC.respond_to?(:compact)
puts "done"
