#!/bin/sh
# javac and java: threads, collections, direct buffers, compression.
. "$(dirname "$0")/common.sh"
need java javac
cd "$folder" || exit 1
cat > Work.java <<'END'
import java.nio.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Work {
    static long work(int seed) throws Exception {
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            byte[] data = new byte[20000 + i * 10];
            for (int k = 0; k < data.length; k++) data[k] = (byte) (k * seed / 7);
            Deflater deflater = new Deflater();
            deflater.setInput(data);
            deflater.finish();
            byte[] packed = new byte[data.length + 100];
            int n = deflater.deflate(packed);
            deflater.end();
            CRC32 crc = new CRC32();
            crc.update(packed, 0, n);
            sum += crc.getValue();
            ByteBuffer direct = ByteBuffer.allocateDirect(50000 + i);
            direct.put(0, (byte) i);
            sum += direct.get(0);
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> results = new ArrayList<>();
        for (int i = 1; i <= 24; i++) { final int seed = i; results.add(pool.submit(() -> work(seed))); }
        for (Future<Long> result : results) System.out.println(result.get());
        pool.shutdown();
        System.out.println(Runtime.getRuntime().availableProcessors());
        System.err.println(Files.readString(Path.of("/proc/self/maps")).contains("libnumalloc") ? "True" : "False");
    }
}
END
mkdir with without
javac -d without Work.java || fail "javac without the library"
watched javac -d with Work.java 2> errors || { cat errors; fail "javac"; }
silent errors
require_processes 1
for class in without/*; do cmp "$class" "with/$(basename "$class")" || fail "other class file"; done
java -cp without Work > expected 2> /dev/null || fail "java without the library"
preloaded java -cp with Work > got 2> mapped || { cat mapped; fail "java ended badly"; }
cmp got expected || fail "other results"
[ "$(cat mapped)" = $MAPPED ] || fail "stderr: $(cat mapped)"
echo "java: $(wc -l < got) results as without the library"
