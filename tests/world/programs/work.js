// Buffers, workers, compression and a child.
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const zlib = require("zlib"), crypto = require("crypto"), { spawnSync } = require("child_process");
function work(seed) {
  let total = 0;
  for (let i = 0; i < 200; i++) {
    const buffer = Buffer.alloc(1000 + ((i * seed * 7919) % 60000), i);
    total += zlib.deflateSync(buffer).length + zlib.brotliCompressSync(buffer, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 3 } }).length;
  }
  return total;
}
if (!isMainThread) {
  parentPort.postMessage(work(workerData));
} else {
  const workers = [1, 2, 3, 4].map((n) => new Promise((done, fail) => {
    new Worker(__filename, { workerData: n }).on("message", done).on("error", fail);
  }));
  Promise.all(workers).then((sums) => {
    const direct = work(1) === sums[0];
    const map = new Map();
    for (let i = 0; i < 200000; i++) map.set("k" + ((i * 7919) % 100003), "v".repeat(i % 40));
    console.log(direct, map.size, crypto.createHash("sha256").update(Buffer.alloc(5e6, 7)).digest("hex"));
    console.log(spawnSync(process.execPath, ["-p", "6*7"]).stdout.toString().trim());
  });
}
