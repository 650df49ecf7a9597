#include "statistics/report.h"

#include <cerrno>

#include "options/print.h"
#include "os/affinity.h"
#include "os/file.h"
#include "os/topology.h"
#include "statistics/gathering.h"

namespace numalloc {

namespace {

struct Field {
    const char* name;
    const char* unit;
};
constexpr Field node_fields[] = {
#define NUMALLOC_STATISTIC(name, unit, what) {#name, unit},
#include "numalloc/statistics.def"
};
constexpr Field class_fields[] = {
#define NUMALLOC_CLASS_STATISTIC(name, unit, what) {#name, unit},
#include "numalloc/statistics.def"
};
constexpr Field process_fields[] = {
#define NUMALLOC_PROCESS_STATISTIC(name, unit, what) {#name, unit},
#include "numalloc/statistics.def"
};

// A struct of the tables as an array of its numbers.
template <class Struct>
const unsigned long long* numbers(const Struct& s) {
    return reinterpret_cast<const unsigned long long*>(&s);
}

bool any(const ClassStatistics& c) {
    for (std::size_t i = 0; i < sizeof class_fields / sizeof *class_fields; ++i)
        if (numbers(c)[i] != 0) return true;
    return false;
}

// Bytes of the UTF-8 character at `s`; 0 if it is invalid: paths are any bytes, but JSON is UTF-8.
unsigned utf8_length(const char* s) {
    const auto byte = [&](unsigned i) { return static_cast<unsigned char>(s[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const unsigned length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4) return 0;
    for (unsigned i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool none = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
    return too_long || none ? 0 : length;
}

class Json {
public:
    explicit Json(Output& out) : out_(out) {}
    void open(char bracket) {
        begin();
        out_ << bracket;
        first_ = true;
    }
    void open(const char* name, char bracket) {
        this->name(name);
        out_ << bracket;
        first_ = true;
    }
    void close(char bracket) {
        out_ << bracket;
        first_ = false;
    }
    template <class T>
    void number(const char* name, T value) {
        this->name(name);
        out_ << value;
    }
    // Writes what `print` prints, as a string.
    template <class Print>
    void string(const char* name, Print print) {
        this->name(name);
        out_ << '"';
        Escaped escaped{out_};
        print(escaped);
        out_ << '"';
    }
    template <unsigned N, class Struct>
    void fields(const Field (&fields)[N], const Struct& s) {
        static_assert(sizeof(Struct) == N * sizeof(unsigned long long));
        for (unsigned i = 0; i < N; ++i) number(fields[i].name, std::uint64_t{numbers(s)[i]});
    }

private:
    struct Escaped {
        Output& out;
        template <class T>
        Escaped& operator<<(T value) {
            Text<32> piece;
            piece << value;
            return *this << piece.c_str();
        }
        Escaped& operator<<(const char* s) {
            while (*s != '\0') {
                const auto c = static_cast<unsigned char>(*s);
                const unsigned length = utf8_length(s);
                if (length == 0) out << "\\ufffd";
                else if (c < 0x20) out << "\\u00" << "0123456789abcdef"[c >> 4] << "0123456789abcdef"[c & 15];
                else if (c == '"' || c == '\\') out << '\\' << *s;
                else
                    for (unsigned i = 0; i < length; ++i) out << s[i];
                s += length > 0 ? length : 1;
            }
            return *this;
        }
    };
    void begin() {
        if (!first_) out_ << ", ";
        first_ = false;
    }
    void name(const char* name) {
        begin();
        out_ << '"' << name << "\": ";
    }

    Output& out_;
    bool first_ = true;
};

void put_version(auto& out) {
    out << NUMALLOC_VERSION_MAJOR;
    out << '.';
    out << NUMALLOC_VERSION_MINOR;
    out << '.';
    out << NUMALLOC_VERSION_PATCH;
}

void report_json(Output& out, const Gathering& gathered) {
    Json json(out);
    json.open('{');
    json.string("numalloc", [](auto& text) { put_version(text); });
    json.open("process", '{');
    json.number("id", os::process_id());
    json.fields(process_fields, process_statistics());
    json.close('}');
    json.open("options", '{');
    for_each_option([&](const char* name, bool, auto print) { json.string(name, print); });
    json.close('}');
    json.open("nodes", '[');
    for (unsigned n = 0; n < gathered.heaps(); ++n) {
        if (!gathered.in_use(n)) continue;
        json.open('{');
        json.number("node", outer_number(n));
        json.fields(node_fields, gathered.of(n).node);
        json.open("classes", '[');
        for (unsigned c = 1; c < class_count; ++c) {
            if (!any(gathered.of(n).of_class[c])) continue;
            json.open('{');
            json.number("object_bytes", std::uint64_t{shape_of(ClassId{c}).size});
            json.fields(class_fields, gathered.of(n).of_class[c]);
            json.close('}');
        }
        json.close(']');
        json.close('}');
    }
    json.close(']');
    json.close('}');
    out << '\n';
}

template <unsigned N, class Struct>
void put_fields(Output& out, const Field (&fields)[N], const Struct& s) {
    for (unsigned i = 0; i < N; ++i)
        if (numbers(s)[i] != 0)
            out.column("", 2).column(fields[i].name, 24).column(std::uint64_t{numbers(s)[i]}, 16)
                << ' ' << fields[i].unit << '\n';
}

constexpr std::size_t column_width = 12;

void put_classes(Output& out, const Gathering::OfNode& node) {
    out.column("", 2).column("object bytes", column_width);
    for (const Field& field : class_fields) {
        for (std::size_t i = strlen(field.name); i < column_width; ++i) out << ' ';
        out << field.name;
    }
    out << '\n';
    for (unsigned c = 1; c < class_count; ++c) {
        if (!any(node.of_class[c])) continue;
        out.column("", 2).column(std::uint64_t{shape_of(ClassId{c}).size}, column_width);
        for (std::size_t i = 0; i < sizeof class_fields / sizeof *class_fields; ++i)
            out.column(std::uint64_t{numbers(node.of_class[c])[i]}, column_width);
        out << '\n';
    }
}

void report_text(Output& out, const Gathering& gathered) {
    out << "numalloc ";
    put_version(out);
    out << ", process " << os::process_id() << '\n';
    put_fields(out, process_fields, process_statistics());
    for_each_option([&](const char* name, bool by_default, auto print) {
        if (by_default) return;
        out << "  option " << name << '=';
        print(out);
        out << '\n';
    });
    for (unsigned n = 0; n < gathered.heaps(); ++n) {
        if (!gathered.in_use(n)) continue;
        if (const int number = outer_number(n); number == NUMALLOC_INTERLEAVED) out << "interleaved\n";
        else out << "node " << number << '\n';
        put_fields(out, node_fields, gathered.of(n).node);
        put_classes(out, gathered.of(n));
    }
}

bool ends_in(const char* text, const char* end) {
    const std::size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

void report(Output& out, numalloc_format format, const Gathering& gathered) {
    if (format == NUMALLOC_JSON) report_json(out, gathered);
    else report_text(out, gathered);
}

// Memory for a limited time that does not use the stack, which may be small.
class Pages {
public:
    explicit Pages(Bytes bytes)
        : bytes_(align_up(bytes, os::page_size())), start_(static_cast<char*>(os::map(bytes_))) {}
    ~Pages() {
        if (start_ != nullptr) os::unmap(start_, bytes_);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    char* start() const { return start_; }
    Bytes bytes() const { return bytes_; }

private:
    Bytes bytes_;
    char* start_;
};

// Replaces "%p" by the process ID. false if the path gets too long.
bool expand_path(const char* pattern, const Pages& path) {
    std::size_t length = 0;
    for (; *pattern != '\0'; ++pattern) {
        Text<32> piece;
        if (pattern[0] == '%' && pattern[1] == 'p') {
            piece << os::process_id();
            ++pattern;
        } else {
            piece << *pattern;
        }
        if (length + piece.size() >= path.bytes()) return false;
        memcpy(path.start() + length, piece.c_str(), piece.size());
        length += piece.size();
    }
    path.start()[length] = '\0';
    return true;
}

struct Room {
    const Pages& pages;
    Bytes length = 0;  // of the whole text, even if it does not fit
};
void put_in(void* context, const char* piece, std::size_t n) {
    Room& room = *static_cast<Room*>(context);
    if (room.length + n <= room.pages.bytes()) memcpy(room.pages.start() + room.length, piece, n);
    room.length += n;
}

// Writes the text at once, so that the lines of several processes do not mix. Options and counts may change at any
// time, so the length is known only afterwards: if the text did not fit, it is made again with more room.
long write_report(long fd, numalloc_format format) {
    const Gathering gathered(Gathering::Depth::resident);
    for (Bytes bytes = 64 * KiB;;) {
        const Pages text(bytes);
        if (text.start() == nullptr) return -ENOMEM;
        Room room{text};
        {
            Output out(put_in, &room);
            report(out, format, gathered);
        }
        if (room.length <= text.bytes()) return os::write_all(fd, text.start(), room.length);
        bytes = 2 * room.length;
    }
}

// Where "exit" is written.
long kept_error = -1;
os::FileIdentity error_at_start;
bool error_is_kept = false;

// The copy of the first stderr; if the program has closed the copy, stderr, if that is still the same file. Else
// -EBADF: its number may belong to a file of the program's data now.
long standard_error() {
    if (!error_is_kept) return os::standard_error;
    if (!error_at_start.found) return -EBADF;
    for (const long fd : {kept_error, long{os::standard_error}})
        if (os::identity_of(fd) == error_at_start) return fd;
    return -EBADF;
}

}  // namespace

void keep_standard_error() {
    error_at_start = os::identity_of(os::standard_error);
    kept_error = os::copy_of(os::standard_error);
    error_is_kept = true;
}

void report_statistics(Output& out, numalloc_format format) {
    report(out, format, Gathering(Gathering::Depth::resident));
}

int write_statistics(const char* file) {
    const numalloc_format format = ends_in(file, ".json") ? NUMALLOC_JSON : NUMALLOC_TEXT;
    if (same(file, "exit")) {
        const long fd = standard_error();
        return fd < 0 ? static_cast<int>(-fd) : static_cast<int>(-write_report(fd, NUMALLOC_TEXT));
    }
    const Pages path(os::longest_path);
    if (path.start() == nullptr) return ENOMEM;
    if (!expand_path(file, path)) return ENAMETOOLONG;
    const long fd = os::open_to_append(path.start());
    if (fd < 0) return static_cast<int>(-fd);
    const long result = write_report(fd, format);
    os::close_file(fd);
    return static_cast<int>(-result);
}

}  // namespace numalloc
