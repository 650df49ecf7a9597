#!/bin/sh
# node: worker threads, buffers, JSON, compression, a child process.
. "$(dirname "$0")/common.sh"
need node
cd "$folder" || exit 1
cat > work.js <<'END'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const zlib = require('zlib'), crypto = require('crypto'), fs = require('fs'), { execFileSync } = require('child_process');
function work(seed) {
  const parts = [];
  for (let i = 0; i < 300; i++) {
    const object = {};
    for (let k = 0; k < 100; k++) object['k' + k] = 'v'.repeat((i * k + seed) % 200);
    const packed = zlib.deflateSync(JSON.stringify(object));
    parts.push(crypto.createHash('sha1').update(zlib.inflateSync(packed)).digest('hex'));
    Buffer.alloc(100000 + i * 1000, i);
  }
  return crypto.createHash('sha1').update(parts.join()).digest('hex');
}
if (isMainThread) {
  const all = [1, 2, 3, 4].map(seed => new Promise((resolve, reject) => {
    const w = new Worker(__filename, { workerData: seed });
    w.on('message', resolve).on('error', reject);
  }));
  Promise.all(all).then(results => {
    console.log(results.concat([work(0)]).join('\n'));
    console.log(execFileSync('sh', ['-c', 'echo child']).toString().trim());
    console.error(fs.readFileSync('/proc/self/maps', 'utf8').includes('libnumalloc') ? 'True' : 'False');
  });
} else parentPort.postMessage(work(workerData));
END
node work.js > expected 2> /dev/null || fail "node without the library"
preloaded node work.js > got 2> mapped || { cat mapped; fail "node ended badly"; }
cmp got expected || fail "other results"
[ "$(cat mapped)" = $MAPPED ] || fail "stderr: $(cat mapped)"
echo "node: $(wc -l < got) results as without the library"
