// Documents as a web service handles them: a text of JSON is read into a tree, the tree changed and
// written out again; the text must come out as it went in, but for the changes.
#include <cctype>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

struct Value {
    enum class Kind { number, text, list, object };
    using Member = std::pair<std::string, std::unique_ptr<Value>>;

    Kind kind = Kind::number;
    std::uint64_t number = 0;
    std::string text;
    std::vector<std::unique_ptr<Value>> list;
    std::vector<Member> members;
};

std::unique_ptr<Value> random_value(bench::Random& random, unsigned depth) {
    auto value = std::make_unique<Value>();
    const std::uint64_t choice = random.below(depth == 0 ? 2 : 4);
    value->kind = static_cast<Value::Kind>(choice);
    switch (value->kind) {
        case Value::Kind::number: value->number = random.next() >> random.below(60); break;
        case Value::Kind::text:
            value->text.assign(random.between(0, 80), static_cast<char>('a' + random.below(26)));
            break;
        case Value::Kind::list:
            for (std::uint64_t n = random.between(1, 8); n != 0; --n)
                value->list.push_back(random_value(random, depth - 1));
            break;
        case Value::Kind::object:
            for (std::uint64_t n = random.between(1, 8); n != 0; --n) {
                value->members.emplace_back("member_" + std::to_string(random.below(1'000)),
                                            random_value(random, depth - 1));
            }
    }
    return value;
}

void write(const Value& value, std::string& out) {
    switch (value.kind) {
        case Value::Kind::number: out += std::to_string(value.number); break;
        case Value::Kind::text: out += '"' + value.text + '"'; break;
        case Value::Kind::list: {
            char before = '[';
            for (const auto& item : value.list) {
                out += std::exchange(before, ',');
                write(*item, out);
            }
            out += ']';
            break;
        }
        case Value::Kind::object: {
            char before = '{';
            for (const auto& [name, item] : value.members) {
                out += std::exchange(before, ',');
                out += '"' + name + "\":";
                write(*item, out);
            }
            out += '}';
        }
    }
}

// Reads what write() writes; `at` is the first character, and afterwards the one behind the value.
class Reader {
public:
    explicit Reader(const std::string& text) : at_(text.c_str()) {}

    std::unique_ptr<Value> value() {
        auto value = std::make_unique<Value>();
        if (*at_ == '"') {
            value->kind = Value::Kind::text;
            value->text = quoted();
        } else if (*at_ == '[') {
            value->kind = Value::Kind::list;
            do {
                ++at_;
                value->list.push_back(this->value());
            } while (*at_ == ',');
            expect(']');
        } else if (*at_ == '{') {
            value->kind = Value::Kind::object;
            do {
                ++at_;
                std::string name = quoted();
                expect(':');
                value->members.emplace_back(std::move(name), this->value());
            } while (*at_ == ',');
            expect('}');
        } else {
            if (std::isdigit(static_cast<unsigned char>(*at_)) == 0)
                bench::fail("a document is damaged at '%.10s'", at_);
            while (std::isdigit(static_cast<unsigned char>(*at_)) != 0)
                value->number = 10 * value->number + static_cast<std::uint64_t>(*at_++ - '0');
        }
        return value;
    }

private:
    void expect(char c) {
        if (*at_ != c) bench::fail("a document has '%c' where '%c' belongs", *at_, c);
        ++at_;
    }
    std::string quoted() {
        expect('"');
        const char* const from = at_;
        while (*at_ != '"' && *at_ != '\0') ++at_;
        std::string text(from, at_);
        expect('"');
        return text;
    }

    const char* at_;
};

// Numbers up by one, from where they are; a text becomes a longer one. Returns how many values there are.
std::uint64_t change(Value& value) {
    std::uint64_t count = 1;
    if (value.kind == Value::Kind::number) ++value.number;
    if (value.kind == Value::Kind::text) value.text += "-changed";
    for (auto& item : value.list) count += change(*item);
    for (auto& member : value.members) count += change(*member.second);
    return count;
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& documents = command.option("documents", 30'000, "documents handled at scale 1, of all threads");
    const auto& kept = command.option("kept", 100, "texts of documents that a thread holds");
    const auto& depth = command.option("depth", 5, "levels of a document");
    command.parse();

    const std::uint64_t todo = command.scaled(documents);
    std::vector<std::uint64_t> values(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        std::vector<std::string> texts(kept);
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            std::string& text = texts[random.below(kept)];
            if (text.empty() || random.below(4) == 0) {
                auto root = std::make_unique<Value>();
                root->kind = Value::Kind::list;
                for (int n = 0; n < 4; ++n)
                    root->list.push_back(random_value(random, static_cast<unsigned>(depth) - 1));
                text.clear();
                write(*root, text);
            }
            const std::unique_ptr<Value> tree = Reader(text).value();
            std::string again;
            write(*tree, again);
            if (again != text) bench::fail("a document of %zu bytes did not come out as it went in", text.size());
            values[index] += change(*tree);
            text.clear();
            write(*tree, text);
        }
        bench::PageList pages(command.pages());
        for (const std::string& text : texts) pages.add(text.data(), text.size());
        pages.count();
    });
    std::uint64_t operations = 0;
    for (const std::uint64_t count : values) operations += count;
    return command.report({.operations = operations, .seconds = seconds});
}
