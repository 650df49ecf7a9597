// Pictures by rays, as raytrace makes them: main builds one tree of boxes over all triangles, which every thread reads,
// and threads take tiles of a frame one after the other. A ray and what it still has to visit are objects of their own,
// as is each ray that comes back from a surface. Which triangles a pixel's rays meet is its colour.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr unsigned in_a_leaf = 4, tile = 16, bounces = 2;
constexpr double far_away = 1e30;
constexpr std::uint32_t nothing = ~0u;

struct Vector {
    double x[3];
    double operator[](unsigned i) const { return x[i]; }
    friend Vector operator-(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
    friend Vector operator+(const Vector& a, const Vector& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
    friend Vector operator*(const Vector& a, double by) { return {a[0] * by, a[1] * by, a[2] * by}; }
    friend double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
    friend Vector cross(const Vector& a, const Vector& b) {
        return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    }
};
Vector unit(const Vector& a) { return a * (1 / std::sqrt(dot(a, a))); }

struct Triangle {
    Vector corner, one, two;  // a corner, and from there to the others
    std::uint32_t number;
};

struct Leaf {
    std::uint32_t count;
    Triangle triangles[in_a_leaf];
    std::uint64_t tag;
};

// A box with two smaller ones in it, or with some triangles.
struct Box {
    Vector low, high;
    Box *one, *two;
    Leaf* leaf;
    std::uint64_t tag;
};

// What is still to be visited: grows by realloc, as far as the ray needs it. The last place holds the tag.
struct Way {
    std::uint32_t used, room;
    const Box* boxes[1];
};

struct Ray {
    Ray* next;
    Vector from, to, inverse;
    std::uint64_t bounce;
    Way* way;
    std::uint64_t tag;
};

template <class Tagged>
std::uint64_t tag_of(const Tagged* object) {
    return bench::scatter(reinterpret_cast<std::uintptr_t>(object));
}

constexpr std::uint64_t way_end = 0x7761792077617920;
std::size_t way_bytes(std::uint32_t room) { return sizeof(Way) + room * sizeof(Box*); }
void stamp_way(Way* way) { std::memcpy(reinterpret_cast<char*>(way) + way_bytes(way->room) - 8, &way_end, 8); }
void check_way(const Way* way) {
    if (std::memcmp(reinterpret_cast<const char*>(way) + way_bytes(way->room) - 8, &way_end, 8) != 0)
        bench::fail("the way of a ray at %p was overwritten", static_cast<const void*>(way));
}

void visit_later(Ray& ray, const Box* box) {
    if (ray.way->used == ray.way->room) {
        check_way(ray.way);
        const std::uint32_t room = ray.way->room * 2;
        auto* const larger = static_cast<Way*>(std::realloc(ray.way, way_bytes(room)));
        if (larger == nullptr) bench::fail("no memory for %zu bytes", way_bytes(room));
        ray.way = larger;
        ray.way->room = room;
        stamp_way(ray.way);
    }
    ray.way->boxes[ray.way->used++] = box;
}

Ray* cast(const Vector& from, const Vector& to, std::uint64_t bounce, Ray* next) {
    auto* const ray = static_cast<Ray*>(bench::take(sizeof(Ray)));
    constexpr std::uint32_t first_room = 4;
    auto* const way = static_cast<Way*>(bench::take(way_bytes(first_room)));
    way->used = 0;
    way->room = first_room;
    stamp_way(way);
    *ray = {next, from, to, {1 / to[0], 1 / to[1], 1 / to[2]}, bounce, way, tag_of(ray)};
    return ray;
}

void end(Ray* ray) {
    if (ray->tag != tag_of(ray)) bench::fail("the ray at %p was overwritten", static_cast<void*>(ray));
    check_way(ray->way);
    std::free(ray->way);
    std::free(ray);
}

struct Hit {
    double distance = far_away;
    std::uint32_t number = nothing;
    Vector normal{};

    void meet(const Vector& from, const Vector& to, const Triangle& triangle) {
        const Vector p = cross(to, triangle.two), away = from - triangle.corner;
        const double area = dot(triangle.one, p);
        if (std::abs(area) < 1e-14) return;
        const double u = dot(away, p) / area;
        const Vector q = cross(away, triangle.one);
        const double v = dot(to, q) / area, t = dot(triangle.two, q) / area;
        if (u < 0 || v < 0 || u + v > 1 || t < 1e-6) return;
        if (t < distance || (t == distance && triangle.number < number)) {
            distance = t;
            number = triangle.number;
            normal = cross(triangle.one, triangle.two);
        }
    }
};

bool reaches(const Ray& ray, const Box& box, double within) {
    double enter = 0, leave = within;
    for (unsigned i = 0; i < 3; ++i) {
        const double a = (box.low[i] - ray.from[i]) * ray.inverse[i], b = (box.high[i] - ray.from[i]) * ray.inverse[i];
        enter = std::max(enter, std::min(a, b));
        leave = std::min(leave, std::max(a, b));
    }
    return enter <= leave * (1 + 1e-9) + 1e-9;  // rounding must not lose what a look at all triangles would find
}

Hit nearest(Ray& ray, const Box* root) {
    Hit hit;
    visit_later(ray, root);
    while (ray.way->used > 0) {
        const Box& box = *ray.way->boxes[--ray.way->used];
        if (!reaches(ray, box, hit.distance)) continue;
        if (box.leaf != nullptr) {
            for (std::uint32_t i = 0; i < box.leaf->count; ++i) hit.meet(ray.from, ray.to, box.leaf->triangles[i]);
            continue;
        }
        visit_later(ray, box.two);
        visit_later(ray, box.one);
    }
    return hit;
}

// A pixel's colour: every triangle that its rays have met. From a surface one ray goes on, and one to the light.
template <class Find>
std::uint64_t colour(const Vector& from, const Vector& to, const Find& find, bench::PageList* pages) {
    std::uint64_t seen = 0;
    for (Ray* rays = cast(from, to, 0, nullptr); rays != nullptr;) {
        Ray* const ray = rays;
        rays = ray->next;
        if (pages != nullptr) pages->add(ray, sizeof *ray);
        const Hit hit = find(*ray);
        seen = bench::scatter(seen * 3 + hit.number);
        if (hit.number != nothing && ray->bounce < bounces) {
            const Vector at = ray->from + ray->to * hit.distance, normal = unit(hit.normal);
            rays = cast(at, unit(Vector{0.3, 0.9, 0.2}), bounces, rays);
            rays = cast(at, unit(ray->to - normal * (2 * dot(ray->to, normal))), ray->bounce + 1, rays);
        }
        end(ray);
    }
    return seen;
}

// Triangles in a cube, in parts of it that are fuller than others; each is a function of its number.
std::vector<Triangle> make_scene(std::uint64_t count, std::uint64_t seed) {
    std::vector<Triangle> scene(count);
    const double size = 1.5 / std::cbrt(static_cast<double>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
        bench::Random random(seed, i);
        const auto between = [&](double low, double high) {
            return low + (high - low) * static_cast<double>(random.below(1 << 24)) / (1 << 24);
        };
        const double crowd = between(0, 1);
        const Vector middle{between(0, 1), crowd * crowd, between(0, 1)};
        const auto side = [&] { return Vector{between(-size, size), between(-size, size), between(-size, size)}; };
        scene[i] = {middle, side(), side(), static_cast<std::uint32_t>(i)};
    }
    return scene;
}

class Tree {
public:
    explicit Tree(std::vector<Triangle> scene) : root_(build(scene.data(), scene.size())) {}
    ~Tree() {
        for (Box* box : boxes_) {
            if (box->tag != tag_of(box) || (box->leaf != nullptr && box->leaf->tag != tag_of(box->leaf)))
                bench::fail("a box of the tree was overwritten");
            std::free(box->leaf);
            std::free(box);
        }
    }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    const Box* root() const { return root_; }
    const std::vector<Box*>& boxes() const { return boxes_; }

private:
    Box* build(Triangle* triangles, std::size_t count) {
        auto* const box = static_cast<Box*>(bench::take(sizeof(Box)));
        *box = {
            {far_away, far_away, far_away}, {-far_away, -far_away, -far_away}, nullptr, nullptr, nullptr, tag_of(box)};
        boxes_.push_back(box);
        for (std::size_t i = 0; i < count; ++i)
            for (const Vector& corner :
                 {triangles[i].corner, triangles[i].corner + triangles[i].one, triangles[i].corner + triangles[i].two})
                for (unsigned k = 0; k < 3; ++k) {
                    box->low.x[k] = std::min(box->low[k], corner[k]);
                    box->high.x[k] = std::max(box->high[k], corner[k]);
                }
        if (count <= in_a_leaf) {
            box->leaf = static_cast<Leaf*>(bench::take(sizeof(Leaf)));
            box->leaf->count = static_cast<std::uint32_t>(count);
            std::copy(triangles, triangles + count, box->leaf->triangles);
            box->leaf->tag = tag_of(box->leaf);
            return box;
        }
        const Vector size = box->high - box->low;
        const unsigned axis = size[0] >= size[1] && size[0] >= size[2] ? 0 : size[1] >= size[2] ? 1 : 2;
        const std::size_t half = count / 2;
        std::nth_element(triangles, triangles + half, triangles + count,
                         [axis](const Triangle& a, const Triangle& b) { return a.corner[axis] < b.corner[axis]; });
        box->one = build(triangles, half);
        box->two = build(triangles + half, count - half);
        return box;
    }

    std::vector<Box*> boxes_;
    Box* root_;
};

// The eye goes around the scene, a step a frame.
class Camera {
public:
    Camera(std::uint64_t width, std::uint64_t height, std::uint64_t frame) : width_(width), height_(height) {
        const double angle = 0.05 * static_cast<double>(frame);
        eye_ = {0.5 + 1.6 * std::cos(angle), 0.8, 0.5 + 1.6 * std::sin(angle)};
        ahead_ = unit(Vector{0.5, 0.4, 0.5} - eye_);
        right_ = unit(cross(ahead_, {0, 1, 0}));
        up_ = cross(right_, ahead_);
    }
    const Vector& eye() const { return eye_; }
    Vector through(std::uint64_t pixel) const {
        const double across = (static_cast<double>(pixel % width_) + 0.5) / static_cast<double>(width_) - 0.5;
        const double down = (static_cast<double>(pixel / width_) + 0.5) / static_cast<double>(height_) - 0.5;
        return unit(ahead_ + right_ * across + up_ * -down);
    }

private:
    std::uint64_t width_, height_;
    Vector eye_, ahead_, right_, up_;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& triangles = command.option("triangles", 50'000, 10'000'000, "triangles of the scene");
    const auto& width = command.option("width", 160, 1920, "pixels of a row");
    const auto& height = command.option("height", 120, 1080, "rows of a frame");
    const auto& frames = command.option("frames", 6, 200, "frames at scale 1");
    command.parse();
    if (triangles == 0 || triangles >= nothing)
        bench::fail("--triangles: %llu is out of range; accepted: 1 to 4294967294",
                    static_cast<unsigned long long>(triangles));
    if (width == 0 || height == 0) bench::fail("--width, --height: a frame without pixels; accepted: 1 or more");

    const unsigned threads = command.threads();
    const std::uint64_t todo = command.scaled(frames), pixels = width * height;
    std::optional<Tree> tree(std::in_place, make_scene(triangles, command.seed()));
    std::vector<std::uint64_t> picture(pixels);
    const std::uint64_t across = (width + tile - 1) / tile, tiles = across * ((height + tile - 1) / tile);
    std::atomic<std::uint64_t> next_tile{0};
    std::vector<std::uint64_t> sums(threads);
    bench::Barrier barrier(threads);
    const auto find = [&](Ray& ray) { return nearest(ray, tree->root()); };
    const double seconds = bench::run_threads(threads, [&](unsigned index) {
        bench::PageList pages(command.pages());
        std::uint64_t sum = 0;
        for (std::uint64_t frame = 0; frame < todo; ++frame) {
            const Camera camera(width, height, frame);
            std::uint64_t mine = 0;
            while ((mine = next_tile.fetch_add(1, std::memory_order_relaxed)) < tiles) {
                const std::uint64_t top = mine / across * tile, left = mine % across * tile;
                for (std::uint64_t row = top; row < std::min(top + tile, height); ++row)
                    for (std::uint64_t column = left; column < std::min(left + tile, width); ++column) {
                        const std::uint64_t pixel = row * width + column;
                        picture[pixel] = colour(camera.eye(), camera.through(pixel), find,
                                                command.pages().wanted() ? &pages : nullptr);
                        sum += bench::scatter(picture[pixel] + pixel);
                    }
            }
            barrier.wait();
            if (index == 0) next_tile = 0;
            barrier.wait();
        }
        sums[index] = sum;
        // Each its share of the boxes, all of which all threads have read.
        const std::size_t boxes = tree->boxes().size();
        for (std::size_t i = boxes * index / threads; i < boxes * (index + 1) / threads; ++i)
            pages.add(tree->boxes()[i], sizeof(Box));
        pages.count();
    });

    // Some pixels of the last frame once more, by a look at every triangle.
    const std::vector<Triangle> scene = make_scene(triangles, command.seed());
    const auto look_at_all = [&](const Ray& ray) {
        Hit hit;
        for (const Triangle& triangle : scene) hit.meet(ray.from, ray.to, triangle);
        return hit;
    };
    const Camera camera(width, height, todo - 1);
    bench::Random random(command.seed(), ~0u);
    for (int i = 0; i < 16; ++i) {
        const std::uint64_t pixel = random.below(pixels);
        if (picture[pixel] != colour(camera.eye(), camera.through(pixel), look_at_all, nullptr))
            bench::fail("pixel %llu is not what a look at every triangle gives",
                        static_cast<unsigned long long>(pixel));
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t one : sums) sum += one;
    command.figure("answer", static_cast<double>(sum & 0xffffffff));
    const std::uint64_t bytes = tree->boxes().size() * sizeof(Box);
    tree.reset();  // looks at what it frees
    return command.report({.operations = todo * pixels, .seconds = seconds, .requested_bytes = bytes});
}
