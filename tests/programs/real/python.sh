#!/bin/sh
# python3 with its own tests of threads and of JSON, and a pool of processes. Debian's Python: the
# tests come with it (libpython3.11-testsuite).
. "$(dirname "$0")/common.sh"
python=/usr/bin/python3
[ -x $python ] || skip "no $python"
$python -c 'import test.test_threading, test.test_json' 2>/dev/null || skip "no libpython3.11-testsuite"
cd "$folder" || exit 1

# PYTHONMALLOC=malloc sends every object through us, not only what is beyond pymalloc's.
cat > work.py <<'END'
import json, multiprocessing, threading, zlib

def square(n):
    assert mapped() == here
    return sum(i * i for i in range(n))

def mapped():
    return "libnumalloc" in open("/proc/self/maps").read()

here = mapped()
if __name__ == "__main__":
    print("mapped", here)
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(4) as pool:
            print(method, sum(pool.map(square, range(300))))
    results = []
    def work(k):
        data = [{"key %d" % i: list(range(i % 50))} for i in range(3000)]
        text = json.dumps(data)
        assert json.loads(text) == data
        results.append(zlib.crc32(zlib.decompress(zlib.compress(text.encode()))))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    print(len(results), set(results))
END
$python work.py 2>&1 | grep -v mapped > expected
for setting in PYTHONMALLOC=pymalloc PYTHONMALLOC=malloc; do
    preloaded env $setting $python work.py > got 2> errors || { cat errors; fail "$setting"; }
    silent errors
    grep -q "mapped $MAPPED" got || fail "not the library: $(head -1 got)"
    grep -v mapped got | cmp - expected || { cat got; fail "other results under $setting"; }
done

preloaded env PYTHONMALLOC=malloc $python -m test -u none test_threading test_json > tests 2>&1 || { tail -40 tests; fail "python's own tests"; }
grep -q 'All 2 tests OK' tests || { tail -40 tests; fail "python's own tests did not run"; }
echo "python: pools, threads and its own tests"
