"""perl: hashes that grow and shrink, strings that are cut and joined, regular expressions."""

import tempfile
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.programs import Work
from numalloc_tools.programs.real.command import measured

NAME, FAMILY, THREADS, QUICK = "perl", "languages", (1,), True
DESCRIPTION = "hashes, strings, regular expressions and sorting; prints sums that must not change"
NEEDS = {"perl": "perl"}
_WORDS = 400_000
_TEXT = r"""
use strict;
my ($count, $seed) = @ARGV;
my %words;
for my $i (1 .. $count) {
    $seed = ($seed * 1103515245 + 12345) % 2147483648;
    my $word = join '', map { chr(97 + (($seed >> $_) % 26)) } 2 .. 3 + $seed % 5;
    $words{$word} .= ".$i" if length($words{$word} // '') < 400;
    delete $words{$word} if $seed % 11 == 0;
}
my $sum = 0;
for my $word (sort keys %words) {
    my @parts = reverse split /\./, $words{$word};
    $sum = ($sum * 31 + @parts) % 1000000007;
    $words{$word} = join ',', @parts if $word =~ /^(?:a|e|i)+/;
}
$sum += length for values %words;
print "$sum ", scalar(keys %words), "\n";
"""


def run(allocator: Allocator, work: Work) -> Ended:
    words = ["perl", "-e", _TEXT, str(max(100, round(_WORDS * work.scale))), str(work.seed)]
    with tempfile.TemporaryDirectory(prefix="numalloc-bench-") as folder:
        return measured(words, allocator, work, Path(folder), "stdout", {"PERL_HASH_SEED": "0"})
