// Service PORT THREADS: a web service of Java's own server. POST /orders counts the words of the text it is sent,
// keeps the newest 2,000 counts, compresses the text (zlib's memory is malloc's) and answers with both; GET /total
// says how many came. The heap of Java is the JVM's own: malloc serves the JVM, its compiler and zlib.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.DeflaterOutputStream;

class Service {
    static final ArrayDeque<Map<String, Integer>> kept = new ArrayDeque<>();
    static final AtomicLong total = new AtomicLong();

    public static void main(String[] words) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 128);
        server.createContext("/orders", Service::order);
        server.createContext("/total", exchange -> answer(exchange, "{\"total\": " + total.get() + "}"));
        server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(words[1])));
        server.start();
    }

    static void order(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readAllBytes();
        Map<String, Integer> counts = new TreeMap<>();
        for (String word : new String(body, StandardCharsets.UTF_8).split("\\W+")) counts.merge(word, 1, Integer::sum);
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (DeflaterOutputStream stream = new DeflaterOutputStream(packed)) {
            stream.write(body);
        }
        synchronized (kept) {
            kept.addLast(counts);
            if (kept.size() > 2000) kept.removeFirst();
        }
        total.incrementAndGet();
        answer(exchange, "{\"words\": " + counts.size() + ", \"packed\": " + packed.size() + "}");
    }

    static void answer(HttpExchange exchange, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }
}
