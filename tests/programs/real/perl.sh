#!/bin/sh
# perl: hashes, strings, regular expressions, sorting, children.
. "$(dirname "$0")/common.sh"
need perl
cd "$folder" || exit 1
cat > work.pl <<'END'
use strict;
use warnings;
my %words;
for my $i (0 .. 200_000) {
    my $word = join '', map { chr(97 + ($i * $_ * 7) % 26) } 1 .. 1 + $i % 6;
    $words{$word} .= ".$i" if length($words{$word} // '') < 4000;
}
my $sum = 0;
for my $word (sort keys %words) {
    $sum = ($sum * 31 + length $words{$word}) % 1_000_000_007;
    delete $words{$word} if $word =~ /^(?:a|e)+/;
}
my @parts = map { join ',', reverse split /\./, $_ } values %words;
$sum += length for @parts;
for my $child (1 .. 5) {
    open my $pipe, '-|' or do { my @list = map { "x" x $_ } 1 .. 1000; print scalar(@list) * $child; exit 0 };
    $sum += <$pipe>;
    close $pipe;
}
my $maps = do { local $/; open my $f, '<', '/proc/self/maps'; <$f> };
print "sum $sum keys ", scalar(keys %words), "\n";
print STDERR $maps =~ /libnumalloc/ ? "True\n" : "False\n";
END
perl work.pl > expected 2>/dev/null || fail "perl without the library"
preloaded perl work.pl > got 2> mapped || { cat mapped; fail "perl ended badly"; }
cmp got expected || { cat got expected; fail "other results"; }
[ "$(cat mapped)" = $MAPPED ] || fail "stderr: $(cat mapped)"
echo "perl: $(cat got)"
