#include "heap/profile/write.h"

#include <cerrno>

#include "base/text.h"
#include "heap/profile/busy.h"
#include "heap/profile/code.h"
#include "heap/profile/places.h"
#include "heap/profile/profile.h"
#include "heap/profile/protobuf.h"
#include "os/affinity.h"
#include "os/topology.h"

namespace numalloc::profile {

namespace {

// clang-format off
// Field numbers of profile.proto.
namespace field {
enum Profile : unsigned {
    sample_type = 1, sample = 2, mapping = 3, location = 4, string_table = 6, time_nanos = 9, duration_nanos = 10,
    period_type = 11, period = 12, comment = 13, default_sample_type = 14
};
namespace value_type { enum : unsigned { type = 1, unit = 2 }; }
namespace of_sample { enum : unsigned { location_id = 1, value = 2, label = 3 }; }
namespace of_label { enum : unsigned { key = 1, text = 2 }; }
namespace of_mapping { enum : unsigned { id = 1, begin = 2, end = 3, offset = 4, path = 5, build_id = 6 }; }
namespace of_location { enum : unsigned { id = 1, mapping_id = 2, address = 3 }; }
}  // namespace field

// The strings of every profile, in the order of their numbers.
#define NUMALLOC_STRINGS(S) \
    S(none, "") S(alloc_objects, "alloc_objects") S(count, "count") S(alloc_space, "alloc_space") S(bytes, "bytes") \
    S(inuse_objects, "inuse_objects") S(inuse_space, "inuse_space") S(space, "space") S(node_alloc, "node_alloc") \
    S(node_pages, "node_pages") S(node_free, "node_free") S(remote_pages, "remote_pages") \
    S(remote_free, "remote_free") S(yes, "yes") S(no, "no") S(unknown, "unknown") S(stack, "stack") \
    S(no_stack, "not known")
// clang-format on

enum String : std::uint64_t {
#define NUMALLOC_NUMBER(name, text) string_##name,
    NUMALLOC_STRINGS(NUMALLOC_NUMBER)
#undef NUMALLOC_NUMBER
        first_other_string
};
constexpr const char* strings[] = {
#define NUMALLOC_TEXT(name, text) text,
    NUMALLOC_STRINGS(NUMALLOC_TEXT)
#undef NUMALLOC_TEXT
};

// A code address of the profile, with its number.
struct Place {
    Address address = 0;
    std::uint64_t id = 0;
    std::uint64_t mapping = 0;

    Address key() const { return address; }
    bool used() const { return address != 0; }
    static std::uint64_t hash(Address a) { return Random::mixed(a); }
};

class Writer {
public:
    explicit Writer(const char* path) : file_(path) {}
    ~Writer() {
        uses_.release();
        places_.release();
    }

    long write(const char* why) {
        if (const long error = file_.finish(); error != 0) return error;
        if (!recorded->store.sum_up(uses_, pages_of)) return -ENOMEM;
        number_places();
        write_types();
        uses_.for_each([&](const SiteUse& use) { write_sample(use); });
        write_mappings();
        places_.for_each([&](const Place& place) { write_location(place); });
        write_strings(why);
        return complete_ ? file_.finish() : -ENOMEM;
    }

private:
    void number_places() {
        uses_.for_each([&](const SiteUse& use) {
            most_used_ =
                max_of(most_used_, max_of(use.site.allocated_on, max_of(use.site.pages_on, use.site.freed_on)));
            for (std::uint32_t i = 0; i < use.site.stack->depth; ++i) {
                Place* const place = places_.find_or_add(use.site.stack->frame[i]);
                if (place == nullptr) {
                    complete_ = false;
                    continue;
                }
                if (!place->used()) *place = {use.site.stack->frame[i], places_.size(), 0};
            }
        });
    }

    void write_type(unsigned number, String type, String unit) {
        Message<32> message;
        message.number(field::value_type::type, type);
        message.number(field::value_type::unit, unit);
        file_.message(number, message);
    }
    void write_types() {
        write_type(field::sample_type, string_alloc_objects, string_count);
        write_type(field::sample_type, string_alloc_space, string_bytes);
        write_type(field::sample_type, string_inuse_objects, string_count);
        write_type(field::sample_type, string_inuse_space, string_bytes);
        write_type(field::period_type, string_space, string_bytes);
        file_.number(field::period, recorded->sampling.period);
        file_.number(field::default_sample_type, string_inuse_space);
    }

    // The nodes' strings follow the fixed ones.
    std::uint64_t node_string(OsNode node) const {
        return node < 0 ? std::uint64_t{string_unknown} : first_other_string + static_cast<std::uint64_t>(node);
    }
    template <Bytes Room>
    static void label(Message<Room>& sample, String key, std::uint64_t text) {
        Message<32> message;
        message.number(field::of_label::key, key);
        message.number(field::of_label::text, text);
        sample.message(field::of_sample::label, message);
    }

    void write_sample(const SiteUse& use) {
        const Site& site = use.site;
        Message<Bytes{16} * deepest_stack> ids;
        for (std::uint32_t i = 0; i < site.stack->depth; ++i)
            if (const Place* const place = places_.find(site.stack->frame[i])) ids.varint(place->id);
        Message<64> values;
        const auto rounded = [](double x) { return static_cast<std::uint64_t>(x + 0.5); };
        values.varint(rounded(use.allocated.objects));
        values.varint(rounded(use.allocated.bytes));
        values.varint(rounded(use.in_use.objects));
        values.varint(rounded(use.in_use.bytes));
        Message<16 * deepest_stack + 512> sample;
        sample.message(field::of_sample::location_id, ids);
        sample.message(field::of_sample::value, values);
        label(sample, string_node_alloc, node_string(site.allocated_on));
        label(sample, string_node_pages, node_string(site.pages_on));
        const auto elsewhere = [](OsNode a, OsNode b) {
            return a < 0 || b < 0 ? string_unknown : a != b ? string_yes : string_no;
        };
        label(sample, string_remote_pages, elsewhere(site.pages_on, site.allocated_on));
        if (site.freed_on != not_freed) {
            label(sample, string_node_free, node_string(site.freed_on));
            label(sample, string_remote_free, elsewhere(site.freed_on, site.allocated_on));
        }
        if (site.stack->depth == 0) label(sample, string_stack, string_no_stack);
        file_.message(field::sample, sample);
    }

    std::uint64_t first_mapping_string() const {
        return first_other_string + static_cast<std::uint64_t>(most_used_ + 1);
    }

    void write_mappings() {
        CodeMapping code;
        std::uint64_t string = first_mapping_string();
        while (code_.next(code)) {
            ++mappings_;
            Message<96> message;
            message.number(field::of_mapping::id, mappings_);
            message.number(field::of_mapping::begin, code.begin);
            message.number(field::of_mapping::end, code.end);
            message.number(field::of_mapping::offset, code.offset);
            message.number(field::of_mapping::path, string++);
            message.number(field::of_mapping::build_id, string++);
            file_.message(field::mapping, message);
            places_.for_each([&](Place& place) {
                if (place.address - code.begin < code.end - code.begin) place.mapping = mappings_;
            });
        }
    }

    void write_location(const Place& place) {
        Message<48> message;
        message.number(field::of_location::id, place.id);
        message.number(field::of_location::mapping_id, place.mapping);
        message.number(field::of_location::address, place.address);
        file_.message(field::location, message);
    }

    void write_comment(std::uint64_t& string, const Text<200>& text) {
        file_.number(field::comment, string++);
        file_.text(field::string_table, text.c_str(), text.size());
    }

    void write_strings(const char* why) {
        for (const char* s : strings) file_.text(field::string_table, s, std::strlen(s));
        for (int node = 0; node <= most_used_; ++node) {
            Text<16> text;
            text << node;
            file_.text(field::string_table, text.c_str(), text.size());
        }
        CodeMapping code;
        code_.again();
        for (std::uint64_t i = 0; i < mappings_ && code_.next(code); ++i) {
            code_.read_build_id(code);
            file_.foreign_text(field::string_table, code.path, code.path_length);
            file_.text(field::string_table, code.build_id, code.build_id_length);
        }
        std::uint64_t string = first_mapping_string() + 2 * mappings_;
        const std::uint64_t now = os::time_of_day();
        write_comment(string, Text<200>{} << "numalloc: process " << os::process_id());
        write_comment(string, Text<200>{} << "numalloc: written " << why);
        write_comment(string, Text<200>{} << "numalloc: nodes " << os::topology().nodes());
        write_comment(string, Text<200>{} << "numalloc: lost records " << recorded->store.lost());
        if (!has_unwinder())
            write_comment(string, Text<200>{} << "numalloc: no stacks, because libgcc_s.so.1 is not in the process");
        file_.number(field::time_nanos, now);
        file_.number(field::duration_nanos, now - recorded->began);
    }

    MessageFile file_;
    Table<SiteUse> uses_;
    Table<Place> places_;
    CodeMappings code_;
    std::uint64_t mappings_ = 0;
    OsNode most_used_ = 0;
    bool complete_ = true;
};

}  // namespace

bool names_process(const char* pattern) {
    for (const char* p = pattern; *p != '\0'; ++p)
        if (*p == '%' && *++p == 'p') return true;
        else if (*p == '\0') break;
    return false;
}

bool make_path(const char* pattern, Path& path) {
    Text<sizeof path.text> text;
    std::size_t length = 0;
    for (const char* p = pattern; *p != '\0'; ++p) {
        if (*p == '%' && p[1] == 'p') {
            text << os::process_id();
            ++p;
        } else {
            if (*p == '%' && p[1] == '%') ++p;
            text << *p;
        }
        // A text that is full stays as long as it was.
        if (text.size() == length) return false;
        length = text.size();
    }
    std::memcpy(path.text, text.c_str(), text.size() + 1);
    return length > 0;
}

long write(const char* path, const char* why) {
    if (!on()) return -ENOTSUP;
    const Busy self;
    Writer writer(path);
    return writer.write(why);
}

}  // namespace numalloc::profile
