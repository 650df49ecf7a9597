// Clusters of points that come in a stream, as streamcluster finds them: main reads a chunk of points into one large
// block, all threads look for the best centers in it, and main keeps these; at the end they are clustered themselves.
// Coordinates are small whole numbers, so that no sum depends on who adds up which part of it.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr std::uint64_t fewest = 10, most = 20;  // centers, as in all of PARSEC's inputs
constexpr unsigned attempts = 8;                 // at the price of a center that leads to so many
constexpr unsigned sources = 24;                 // around which the points lie

// Memory of which the last word says what it is for.
void* take_stamped(std::size_t bytes) {
    void* const p = bench::take(bytes + 8);
    const std::uint64_t tag = bench::scatter(bytes);
    std::memcpy(static_cast<char*>(p) + bytes, &tag, 8);
    return p;
}
void release_stamped(void* p, std::size_t bytes) {
    const std::uint64_t tag = bench::scatter(bytes);
    if (std::memcmp(static_cast<char*>(p) + bytes, &tag, 8) != 0)
        bench::fail("what came after %zu bytes at %p was overwritten", bytes, p);
    std::free(p);
}

struct Point {
    const float* at;
    std::int64_t weight, cost;  // cost: the weighted distance to its center
    std::uint64_t center;       // a place in the table of centers
};

constexpr std::uint64_t none = ~std::uint64_t{0};

// What the threads share while they cluster one chunk. Thread 0 decides, between two barriers; each does its points.
class Chunk {
public:
    Chunk(unsigned threads, std::uint64_t dimensions, std::uint64_t seed)
        : threads_(threads), dimensions_(dimensions), random_(seed), barrier_(threads) {}

    void begin(Point* points, std::uint64_t count) {
        points_ = points;
        count_ = count;
        low_ = 0;
        high_ = -1;
        settled_ = false;
    }

    // Called by all threads: opens centers at random, then takes those that pay, at a price that leads to a good
    // number.
    void cluster(unsigned index) {
        for (unsigned attempt = 0; attempt < attempts && !settled_; ++attempt) {
            open_at_random(index);
            improve(index);
            barrier_.wait();
            if (index == 0) next_price();
            barrier_.wait();
        }
    }

    bool is_center(std::uint64_t point) const {
        return points_[point].center != none && centers_[points_[point].center] == point;
    }
    const Point& center_of(const Point& point) const { return points_[centers_[point.center]]; }
    bool is_open(std::uint64_t slot) const { return slot < centers_.size() && centers_[slot] != none; }

    std::int64_t distance(const Point& a, const Point& b) const {
        float sum = 0;  // below 2^24: exact
        for (std::uint64_t i = 0; i < dimensions_; ++i) sum += (a.at[i] - b.at[i]) * (a.at[i] - b.at[i]);
        return static_cast<std::int64_t>(sum);
    }

private:
    std::uint64_t first(unsigned index) const { return count_ * index / threads_; }

    // As pspeedy does: a point opens a center the more likely the farther away the nearest one is.
    void open_at_random(unsigned index) {
        barrier_.wait();
        if (index == 0) {
            centers_.assign(1, 0);
            opened_ = 0;
        }
        barrier_.wait();
        for (std::uint64_t i = first(index); i < first(index + 1); ++i) {
            points_[i].cost = distance(points_[i], points_[0]) * points_[i].weight;
            points_[i].center = 0;
        }
        for (;;) {
            barrier_.wait();
            if (index == 0) {
                if (high_ < 0) {  // the first time it is known what one center for all costs
                    high_ = 0;
                    for (std::uint64_t i = 0; i < count_; ++i) high_ += points_[i].cost;
                    price_ = high_ / 2 + 1;
                }
                do ++opened_;
                while (opened_ < count_ && !by_chance(points_[opened_].cost));
                if (opened_ < count_) centers_.push_back(opened_);
            }
            barrier_.wait();
            if (opened_ >= count_) return;
            const Point& center = points_[opened_];
            for (std::uint64_t i = first(index); i < first(index + 1); ++i) {
                const std::int64_t cost = distance(points_[i], center) * points_[i].weight;
                if (cost < points_[i].cost || i == opened_) {
                    points_[i].cost = cost;
                    points_[i].center = centers_.size() - 1;
                }
            }
        }
    }

    bool by_chance(std::int64_t cost) {
        return static_cast<double>(random_.below(1 << 20)) * static_cast<double>(price_) <
               static_cast<double>(cost) * (1 << 20);
    }

    void improve(unsigned index) {
        const std::uint64_t tries = 3 * most * 3;  // streamcluster: 3 kmax log kmax
        for (std::uint64_t i = 0; i < tries; ++i) consider(index);
    }

    // As pgain does: what would it save to open a center here, and to close those that then do not pay any more? Thread
    // 0 allocates a part of the working memory for each thread; it goes when this is decided.
    void consider(unsigned index) {
        barrier_.wait();
        if (index == 0) {
            candidate_ = random_.below(count_);
            stride_ = (centers_.size() + 1 + 7) / 8 * 8;
            work_ = static_cast<std::int64_t*>(take_stamped(work_bytes()));
            switches_ = static_cast<unsigned char*>(take_stamped(count_));
        }
        barrier_.wait();
        std::int64_t* const saved = work_ + stride_ * index;  // by each center, and last by the points that switch
        std::memset(saved, 0, stride_ * 8);
        const Point& candidate = points_[candidate_];
        for (std::uint64_t i = first(index); i < first(index + 1); ++i) {
            Point& point = points_[i];
            const std::int64_t cost = distance(point, candidate) * point.weight;
            switches_[i] = cost < point.cost;
            if (switches_[i]) saved[stride_ - 1] += point.cost - cost;
            else saved[point.center] += point.cost - cost;  // what it costs more if its center is closed
        }
        barrier_.wait();
        if (index == 0) decide();
        barrier_.wait();
        if (open_) {
            for (std::uint64_t i = first(index); i < first(index + 1); ++i) {
                Point& point = points_[i];
                if (!switches_[i] && !closes_[point.center] && i != candidate_) continue;
                point.cost = distance(point, points_[candidate_]) * point.weight;
                point.center = centers_.size();
            }
        }
        barrier_.wait();
        if (index == 0) {
            if (open_) {
                for (std::uint64_t slot = 0; slot < centers_.size(); ++slot)
                    if (closes_[slot]) centers_[slot] = none;
                centers_.push_back(candidate_);
            }
            release_stamped(work_, work_bytes());
            release_stamped(switches_, count_);
        }
    }

    void decide() {
        std::int64_t gain = -price_;
        closes_.assign(centers_.size(), false);
        for (unsigned thread = 0; thread < threads_; ++thread) gain += work_[stride_ * thread + stride_ - 1];
        for (std::uint64_t slot = 0; slot < centers_.size(); ++slot) {
            if (centers_[slot] == none) continue;
            std::int64_t left = price_;
            for (unsigned thread = 0; thread < threads_; ++thread) left += work_[stride_ * thread + slot];
            if (left > 0) {
                closes_[slot] = true;
                gain += left;
            }
        }
        open_ = gain > 0;
    }

    void next_price() {
        std::uint64_t open = 0;
        for (const std::uint64_t center : centers_) open += center != none;
        settled_ = open >= fewest && open <= most;
        if (settled_) return;
        (open > most ? low_ : high_) = price_;
        price_ = low_ + (high_ - low_) / 2 + 1;
    }

    std::size_t work_bytes() const { return stride_ * threads_ * 8; }

    const unsigned threads_;
    const std::uint64_t dimensions_;
    bench::Random random_;
    bench::Barrier barrier_;
    Point* points_ = nullptr;
    std::uint64_t count_ = 0, opened_ = 0, candidate_ = 0, stride_ = 0;
    std::vector<std::uint64_t> centers_;  // which point is the center of this number
    std::vector<bool> closes_;
    std::int64_t *work_ = nullptr, price_ = 0, low_ = 0, high_ = 0;
    unsigned char* switches_ = nullptr;
    bool open_ = false, settled_ = false;
};

// The stream: points around some sources, each a function of its number.
void make_point(float* at, std::uint64_t dimensions, std::uint64_t number, std::uint64_t seed) {
    bench::Random random(seed, number);
    const std::uint64_t source = random.below(sources);
    for (std::uint64_t i = 0; i < dimensions; ++i)
        at[i] = static_cast<float>((bench::scatter(source * 4096 + i) & 191) + random.below(64));
}

// The points and their coordinates, as main reads them; used for each chunk in turn.
class Points {
public:
    Points(std::uint64_t count, std::uint64_t dimensions)
        : dimensions_(dimensions),
          block_bytes_(count * dimensions * sizeof(float)),
          points_bytes_(count * sizeof(Point)),
          block_(static_cast<float*>(take_stamped(block_bytes_))),
          points_(static_cast<Point*>(take_stamped(points_bytes_))) {}
    ~Points() {
        release_stamped(block_, block_bytes_);
        release_stamped(points_, points_bytes_);
    }
    Points(const Points&) = delete;
    Points& operator=(const Points&) = delete;
    float* coordinates(std::uint64_t i) { return block_ + i * dimensions_; }
    void set(std::uint64_t i, std::int64_t weight) { points_[i] = {coordinates(i), weight, 0, none}; }
    Point* all() { return points_; }
    std::uint64_t bytes() const { return block_bytes_ + points_bytes_; }

private:
    std::uint64_t dimensions_;
    std::size_t block_bytes_, points_bytes_;
    float* block_;
    Point* points_;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& stream = command.option("points", 32'768, 1'000'000, "points of the stream at scale 1");
    const auto& largest = command.option("chunk", 8192, 200'000, "points of a chunk");
    const auto& dimensions = command.option("dimensions", 32, 128, "coordinates of a point, 256 at most");
    command.parse();
    if (dimensions == 0 || dimensions > 256)
        bench::fail("--dimensions: %llu is out of range; accepted: 1 to 256",
                    static_cast<unsigned long long>(dimensions));
    if (largest == 0) bench::fail("--chunk: 0 is too few; accepted: 1 or more");

    const unsigned threads = command.threads();
    const std::uint64_t todo = command.scaled(stream), chunks = (todo + largest - 1) / largest;
    std::optional<Points> points(std::in_place, std::min(largest, todo), dimensions);
    Chunk chunk(threads, dimensions, command.seed());
    std::vector<std::pair<float*, std::int64_t>> found;  // centers of the chunks until now, with the points of each
    const std::size_t center_bytes = dimensions * sizeof(float);
    double seconds = 0;
    std::int64_t cost = 0;

    // Whatever was decided, each point has a center that is open, and costs what it is away from it.
    const auto checked = [&](std::uint64_t count) {
        std::int64_t sum = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            const Point& point = points->all()[i];
            if (point.at != points->coordinates(i) || !chunk.is_open(point.center))
                bench::fail("a point was overwritten");
            if (point.cost != chunk.distance(point, chunk.center_of(point)) * point.weight)
                bench::fail("a point is not as far from its center as it was");
            sum += point.cost;
        }
        return sum;
    };
    const auto run = [&](std::uint64_t count, bool last) {
        chunk.begin(points->all(), count);
        seconds += bench::run_threads(threads, [&](unsigned index) {
            chunk.cluster(index);
            if (!last) return;
            bench::PageList pages(command.pages());
            for (std::uint64_t i = count * index / threads; i < count * (index + 1) / threads; ++i) {
                pages.add(points->coordinates(i), center_bytes);
                pages.add(points->all() + i, sizeof(Point));
            }
            pages.count();
        });
        return checked(count);
    };

    std::vector<float> again(dimensions);
    for (std::uint64_t number = 0; number < chunks; ++number) {
        const std::uint64_t from = number * largest, count = std::min(largest, todo - from);
        for (std::uint64_t i = 0; i < count; ++i) {
            make_point(points->coordinates(i), dimensions, from + i, command.seed());
            points->set(i, 1);
        }
        cost += run(count, number + 1 == chunks);
        std::vector<std::int64_t> weights(count);
        for (std::uint64_t i = 0; i < count; ++i) {
            make_point(again.data(), dimensions, from + i, command.seed());
            if (std::memcmp(again.data(), points->coordinates(i), center_bytes) != 0)
                bench::fail("a point's coordinates were overwritten");
            weights[static_cast<std::uint64_t>(&chunk.center_of(points->all()[i]) - points->all())] += 1;
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            if (!chunk.is_center(i)) continue;
            auto* const copy = static_cast<float*>(take_stamped(center_bytes));
            std::memcpy(copy, points->coordinates(i), center_bytes);
            found.emplace_back(copy, weights[i]);
        }
    }

    // Of many chunks there are more centers than points in one; the first of them are enough.
    const std::uint64_t kept = std::min<std::uint64_t>(found.size(), std::min(largest, todo));
    for (std::uint64_t i = 0; i < kept; ++i) {
        std::memcpy(points->coordinates(i), found[i].first, center_bytes);
        points->set(i, found[i].second);
    }
    const std::int64_t last_cost = run(kept, false);
    for (const auto& [copy, weight] : found) release_stamped(copy, center_bytes);
    command.figure("centers", static_cast<double>(found.size()));
    command.figure("answer", static_cast<double>((cost + last_cost) & 0xffffffff));
    const std::uint64_t bytes = points->bytes();
    points.reset();  // looks at what it frees
    return command.report({.operations = todo, .seconds = seconds, .requested_bytes = bytes});
}
