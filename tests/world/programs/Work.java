import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Native memory of the virtual machine: its compilers, deflaters, direct buffers, and threads that come and go. */
public class Work {
    static long work(int seed) {
        CRC32 sum = new CRC32();
        for (int i = 0; i < 200; i++) {
            byte[] data = new byte[10000 + i * 100];
            for (int k = 0; k < data.length; k++) data[k] = (byte) (k * seed / 7);
            Deflater deflater = new Deflater();
            deflater.setInput(data);
            deflater.finish();
            byte[] packed = new byte[data.length + 100];
            sum.update(packed, 0, deflater.deflate(packed));
            deflater.end();
            ByteBuffer.allocateDirect(50000 + i).putInt(0, i);
        }
        return sum.getValue();
    }

    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < 4; round++) {
            ExecutorService pool = Executors.newFixedThreadPool(8);
            List<Future<Long>> results = new ArrayList<>();
            for (int i = 1; i <= 16; i++) {
                final int seed = i + round;
                results.add(pool.submit(() -> work(seed)));
            }
            long total = 0;
            for (Future<Long> result : results) total += result.get();
            System.out.println(total);
            pool.shutdown();
        }
    }
}
