import java.lang.reflect.Field;
import sun.misc.Unsafe;

/** Threads that allocate and compute beside those of the virtual machine itself, and a child of ProcessBuilder. */
public class Nodes {
    static int sink;

    static void work(Unsafe memory, long until) {
        long[] blocks = new long[256];
        int next = 0, sum = 0;
        while (System.nanoTime() < until) {
            for (int n = 0; n < 16; n++) {
                int size = 16 + ++next * 79 % 3000;
                memory.freeMemory(blocks[next % blocks.length]);
                memory.setMemory(blocks[next % blocks.length] = memory.allocateMemory(size), size, (byte) 1);
            }
            for (int k = 0; k < 20000; k++) sum = sum * 31 + k;
        }
        for (long block : blocks) memory.freeMemory(block);
        sink = sum;
    }

    public static void main(String[] words) throws Exception {
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe memory = (Unsafe) field.get(null);
        long length = (long) (Double.parseDouble(words[0]) * 1e9);
        System.out.println("processors: " + Runtime.getRuntime().availableProcessors());
        work(memory, System.nanoTime() + length / 4); // until it is compiled
        Thread[] threads = new Thread[8];
        System.out.println("begin threads");
        long until = System.nanoTime() + length;
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> work(memory, until));
            threads[t].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println("end");
        System.out.println("processors: " + Runtime.getRuntime().availableProcessors());
        new ProcessBuilder("grep", "Cpus_allowed_list", "/proc/self/status").inheritIO().start().waitFor();
    }
}
