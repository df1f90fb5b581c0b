// The kernel as a Python module: a question comes in as arrays, the tree goes out as arrays.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "anneal.hpp"
#include "branching.hpp"

namespace py = pybind11;
using namespace likewise;

constexpr double FAR = 1e12;  // beyond all that a row with an upper end of its own can be

template <class T> std::vector<T> list(const py::handle &from) {
    auto array = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(from);
    if (!array) throw py::error_already_set();
    return std::vector<T>(array.data(), array.data() + array.size());
}

template <class T> py::array_t<T> array(const std::vector<T> &from) { return py::array_t<T>(from.size(), from.data()); }

static Curve curve_of(const py::dict &d) {
    Curve curve;
    curve.function = &function_of(d["activation"].cast<std::string>());
    std::vector<double> low = list<double>(d["piece_low"]), high = list<double>(d["piece_high"]);
    std::vector<int> bend = list<int>(d["piece_bend"]);
    for (size_t k = 0; k < low.size(); k++) curve.pieces.push_back({low[k], high.at(k), bend.at(k)});
    curve.kinks = list<double>(d["kinks"]);
    auto interval = [&](const char *name) {
        std::vector<double> ends = list<double>(d[name]);
        return Interval{ends.at(0), ends.at(1)};
    };
    curve.values = interval("values");
    curve.steepness = interval("steepness");
    if (d.contains("bends")) {
        const Interval bends = interval("bends");
        curve.second = bends.low;
        curve.third = bends.high;
    }
    return curve;
}

// Tell the program of the slopes of a curved layer's lines.
static void bend_lines(const py::dict &d, Layer &layer, Program &program) {
    const char *sides[2] = {"left", "right"};
    auto add = [&](const Bend &bend) {
        program.add_bend(bend);
        return int(program.bends.size()) - 1;
    };
    for (int side = 0; side < 2; side++) {
        std::vector<int> rows = list<int>(d[(std::string("lines_") + sides[side]).c_str()]);
        std::vector<double> slopes = list<double>(d[(std::string("slopes_") + sides[side]).c_str()]);
        for (int k = 0; k < 4; k++)
            for (int j = 0; j < layer.height; j++) {
                const size_t at = size_t(k) * layer.height + j;
                layer.bend[side][k].push_back(add({rows.at(at), layer.z[side][j], -1, -1, slopes.at(at)}));
            }
    }
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < layer.height; j++)
            layer.differ[k].push_back(add({(k ? layer.above : layer.below)[j], layer.z[0][j], layer.z[1][j], layer.dz[j],
                                           (k ? layer.above_slope : layer.below_slope)[j]}));
    if (!d.contains("plane_rows")) return;
    std::vector<int> rows = list<int>(d["plane_rows"]);
    for (size_t at = 0; at < rows.size();)
        for (std::vector<std::vector<int>> &side : layer.planes) {  // above and below in turn
            side.emplace_back();
            for (int j = 0; j < layer.height; j++, at++) {
                side.back().push_back(add({rows.at(at), layer.z[0][j], layer.z[1][j], layer.dz[j], 0.0}));
                add({rows.at(at), layer.z[1][j], -1, -1, 0.0});
            }
        }
}

static Layer layer_of(const py::dict &d, int first) {
    Layer layer;
    layer.bias = list<double>(d["bias"]);
    layer.weight = list<double>(d["weight"]);
    layer.height = int(layer.bias.size());
    layer.width = layer.height ? int(layer.weight.size()) / layer.height : 0;
    layer.first = first;
    const char *sides[2] = {"left", "right"};
    layer.dz = list<int>(d["dz"]);
    layer.influence = list<double>(d["influence"]);
    for (int side = 0; side < 2; side++) layer.z[side] = list<int>(d[(std::string("z_") + sides[side]).c_str()]);
    if (!d.contains("v_left")) return layer;
    if (d.contains("activation")) layer.curve = curve_of(d);
    for (int side = 0; side < 2; side++) {
        auto get = [&](const char *name) { return d[(std::string(name) + "_" + sides[side]).c_str()]; };
        layer.v[side] = list<int>(get("v"));
        if (layer.is_curved()) continue;
        layer.steep[side] = list<int>(get("steep"));
        layer.chord[side] = list<int>(get("chord"));
        layer.chord_slope[side] = list<double>(get("chord_slope"));
    }
    layer.below = list<int>(d["below"]);
    layer.above = list<int>(d["above"]);
    layer.value = list<int>(d["value"]);
    layer.below_slope = list<double>(d["below_slope"]);
    layer.above_slope = list<double>(d["above_slope"]);
    return layer;
}

static Joint joint_of(const py::dict &d) {
    Joint joint;
    joint.row = d["row"].cast<int>();
    joint.upper = d["upper"].cast<double>();
    joint.margin = d["margin"].cast<double>();
    joint.constant = d["constant"].cast<double>();
    joint.constant_size = d["constant_size"].cast<double>();
    joint.base = list<double>(d["base"]);
    joint.shift = list<double>(d["shift"]);
    joint.linear = list<double>(d["linear"]);
    joint.scale = list<double>(d["scale"]);
    joint.columns = list<int>(d["columns"]);
    joint.interval = list<double>(d["interval"]);
    joint.slope = list<double>(d["slope"]);
    joint.n = int(joint.linear.size());
    return joint;
}

static Question question_of(const py::dict &d) {
    Question q;
    Program &p = q.program;
    p.columns = d["columns"].cast<int>();
    p.start = list<int>(d["start"]);
    p.index = list<int>(d["index"]);
    p.value = list<double>(d["value"]);
    p.rows = int(p.start.size()) - 1;
    q.goal = d["goal"].cast<int>();
    p.cost.assign(p.columns, 0.0);
    p.cost[q.goal] = 1.0;
    p.kept = list<uint8_t>(d["kept"]);
    p.zero = list<uint8_t>(d["zero"]);
    std::vector<int> rows = list<int>(d["solved_rows"]), columns = list<int>(d["solved_columns"]);
    for (size_t k = 0; k < rows.size(); k++) p.solved.emplace_back(rows[k], columns[k]);
    p.given = list<double>(d["given"]);
    q.low = list<double>(d["low"]);
    q.high = list<double>(d["high"]);
    if (d.contains("ball_columns")) {
        Ball &ball = p.ball;
        ball.columns = list<int>(d["ball_columns"]);
        q.compared = list<int>(d["ball_people"]);
        ball.full = list<double>(d["ball_full"]);
        ball.turn = list<double>(d["ball_turn"]);
        ball.turned = list<double>(d["ball_turned"]);
        ball.eps = d["ball_eps"].cast<double>();
        ball.height = int(ball.full.size() / ball.columns.size());
        ball.directions = int(ball.turned.size() / ball.columns.size());
    }
    if (d.contains("ball_even")) {
        p.ball.even = d["ball_even"].cast<double>();
        p.ball.sign = list<double>(d["ball_sign"]);
        p.ball.uneven = list<double>(d["ball_uneven"]);
        p.shape = std::make_shared<const Shape>(p, q.low, q.high);
    }
    p.jostle(q.low, q.high, NUDGE);
    q.low.push_back(1.0);
    q.high.push_back(1.0);
    for (const py::handle &one : d["layers"]) {
        q.layers.push_back(layer_of(one.cast<py::dict>(), q.neurons));
        if (q.layers.back().is_curved()) bend_lines(one.cast<py::dict>(), q.layers.back(), p);
        q.neurons += q.layers.back().height;
    }
    if (p.shape && !p.bends.empty()) throw std::invalid_argument("the interior point method takes relu networks alone");
    p.transpose();
    for (const py::handle &one : d["joints"]) q.joints.push_back(joint_of(one.cast<py::dict>()));
    for (const Joint &joint : q.joints) {  // of a tree: a dense row that is never outside stays out of the way
        q.low[p.columns + joint.row] = -FAR;
        q.high[p.columns + joint.row] = FAR;
    }
    q.x[0] = list<int>(d["x_left"]);
    q.x[1] = list<int>(d["x_right"]);
    for (int side = 0; side < 2; side++) {
        q.x_low[side] = list<double>(d[side == 0 ? "low_left" : "low_right"]);
        q.x_high[side] = list<double>(d[side == 0 ? "high_left" : "high_right"]);
    }
    q.grouped.assign(q.x[0].size(), 0);
    std::vector<int> starts = list<int>(d["group_starts"]), stops = list<int>(d["group_stops"]);
    std::vector<uint8_t> shared = list<uint8_t>(d["group_shared"]);
    for (size_t k = 0; k < starts.size(); k++) {
        q.groups.push_back({starts[k], stops[k], shared[k] != 0});
        for (int c = starts[k]; c < stops[k]; c++) q.grouped[c] = 1;
    }
    q.reliable = d["reliable"].cast<int>();
    q.dive_every = d["dive_every"].cast<int>();
    q.narrowing = d["narrowing"].cast<double>();
    q.harmless = d["harmless"].cast<bool>();
    q.curved = d["curved"].cast<bool>();
    q.t = d["t"].cast<double>();
    return q;
}

static Part part_of(const py::dict &d, const Question &q) {
    Part part;
    const char *kinds[3] = {"left", "right", "dz"};
    for (int kind = 0; kind < 3; kind++) {
        std::vector<double> low = list<double>(d[(std::string("low_") + kinds[kind]).c_str()]);
        std::vector<double> high = list<double>(d[(std::string("high_") + kinds[kind]).c_str()]);
        for (size_t k = 0; k < low.size(); k++) part.box[kind].push_back({low[k], high[k]});
    }
    for (int side = 0; side < 2; side++) {
        for (size_t c = 0; c < q.x[side].size(); c++)
            part.allowed[side].push_back(!q.grouped[c] || q.x_high[side][c] > 0.5);
    }
    return part;
}

// The program of a whole question, for one objective after the other.
struct Linear {
    Question question;
    Tableau tableau;

    explicit Linear(Question q) : question(std::move(q)), tableau(question.program) {}
    Linear(const Linear &) = delete;

    void limit(int column, double low, double high) {
        question.low[column] = low;
        question.high[column] = high;
    }

    // Return how it ended (0: at the optimum), a proven bound, the point, and the multipliers of rows and of the ball.
    py::tuple maximise(const std::vector<int> &columns, const std::vector<double> &values, double accuracy, long most) {
        tableau.accuracy = accuracy;
        const Program &p = question.program;
        std::vector<double> cost(p.columns, 0.0);
        for (size_t k = 0; k < columns.size(); k++) cost.at(columns[k]) += values.at(k);
        tableau.aim(std::move(cost));
        Ended ended = tableau.solve(question.low.data(), question.high.data(), -INF, most);
        Multipliers y = tableau.multipliers();
        const double upper = p.bound(y, tableau.cost(), tableau.slopes(), question.low.data(), question.high.data());
        std::vector<double> x(p.variables());
        tableau.point(x);
        return py::make_tuple(int(ended), upper, array(x), array(y.rows),
                              array(y.mu));
    }
};

static Matrix matrix_of(const py::handle &from) {
    auto array = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(from);
    if (!array) throw py::error_already_set();
    if (array.ndim() != 2) throw std::invalid_argument("a matrix has two axes");
    return {int(array.shape(0)), int(array.shape(1)), Numbers(array.data(), array.data() + array.size())};
}

static Quest quest_of(const py::dict &d) {
    Quest q;
    for (const py::handle &one : d["layers"]) {
        auto layer = one.cast<py::dict>();
        Matrix weight = matrix_of(layer["weight"]), back = weight.turned();
        auto fast = std::make_shared<const Fast>(layer["activation"].cast<std::string>(), layer["is_smooth"].cast<bool>());
        q.stages.push_back({std::move(weight), std::move(back), list<double>(layer["bias"]), std::move(fast)});
    }
    q.low = list<double>(d["low"]);
    q.high = list<double>(d["high"]);
    q.step = list<double>(d["step"]);
    q.free = list<int>(d["free"]);
    q.ahead = q.stages.at(0).weight.only(q.free);
    q.behind = q.ahead.turned();
    q.p = d["p"].cast<double>();
    q.eps = d["eps"].cast<double>();
    q.metric = matrix_of(d["metric"]);
    q.inverse = matrix_of(d["inverse"]);
    q.dual = q.inverse.turned();
    q.square = matrix_of(d["square"]);
    q.blind = matrix_of(d["blind"]);
    q.side = matrix_of(d["side"]);
    q.side_high = list<double>(d["side_high"]);
    q.curved = d["curved"].cast<bool>();
    return q;
}

static std::unique_ptr<Annealer> annealer_of(const py::dict &d, const py::dict &h) {
    std::vector<Annealer::Group> groups;
    for (const py::handle &one : d["groups"]) {
        auto [start, allowed] = one.cast<std::pair<int, std::vector<int>>>();
        groups.push_back({start, std::move(allowed)});
    }
    auto get = [&](const char *name) { return h[name].cast<double>(); };
    Habits habits{get("hot"), get("cold"), get("changed"), get("twice"), get("numbers"), list<double>(h["sizes"]),
                  get("borrowed"), get("blind"), get("uphill"), get("hope"), h["every"].cast<int>(), h["replaced"].cast<int>()};
    Quest quest = quest_of(d);
    if (quest.stages.size() < 2) throw std::invalid_argument("annealing takes a network with hidden layers");
    return std::make_unique<Annealer>(std::move(quest), std::move(groups), list<int>(d["numbers"]), std::move(habits));
}

static py::tuple anneal(Annealer &annealer, const py::handle &people, double seconds, long most, uint64_t seed) {
    Numbers start = list<double>(people);
    const size_t some = size_t(annealer.width()) * LANES;
    if (start.empty() || start.size() % some) throw std::invalid_argument("people to anneal come in lanes");
    {
        py::gil_scoped_release release;
        annealer.look(std::move(start), seconds, most, seed);
    }
    return py::make_tuple(array(annealer.right), array(annealer.apart), array(annealer.gaps), annealer.moves);
}

PYBIND11_MODULE(_kernel, m) {
    m.doc() = "The branch and bound over relu networks, compiled. Its arrays are described in likewise.search.compiled.";
    m.def("offset",
          [](const py::dict &curve, int sign, double rise, double lean, const std::vector<double> &e) {
              return offset(curve_of(curve), sign, rise, lean, {{e.at(0), e.at(1)}, {e.at(2), e.at(3)}, {e.at(4), e.at(5)}});
          },
          "Of a plane, over left z, right z and dz: the lower and upper ends of each.", py::arg("curve"), py::arg("sign"),
          py::arg("rise"), py::arg("lean"), py::arg("ends"));
    m.def("facet",
          [](const py::dict &curve, int sign, double z, double dz, const std::vector<double> &e) {
              Sample sample;
              double rise, lean;
              sample.take(curve_of(curve), {e.at(0), e.at(1)}, {e.at(2), e.at(3)});
              const double top = sample.facet(sign, z, dz, rise, lean);
              return py::make_tuple(top, rise, lean);
          },
          "Of the hull of a difference, at a point: its height, rise and lean; over right z and dz.", py::arg("curve"),
          py::arg("sign"), py::arg("z"), py::arg("dz"), py::arg("ends"));
    py::class_<Linear>(m, "Linear")
        .def(py::init([](const py::dict &question) { return std::make_unique<Linear>(question_of(question)); }))
        .def("limit", &Linear::limit)
        .def("maximise", &Linear::maximise, py::arg("columns"), py::arg("values"), py::arg("accuracy"), py::arg("most") = 5000)
        .def_property_readonly("steps", [](const Linear &linear) { return linear.tableau.pivots(); });
    py::class_<Annealer>(m, "Annealer")
        .def(py::init(&annealer_of))
        .def("look", &anneal, py::arg("people"), py::arg("seconds"), py::arg("most"), py::arg("seed"));
    py::class_<Tree>(m, "Tree")
        .def(py::init([](const py::dict &question, const py::dict &root, double upper) {
            Question q = question_of(question);
            Part part = part_of(root, q);
            return std::make_unique<Tree>(std::move(q), std::move(part), upper);
        }))
        .def("renew",
             [](Tree &tree, const py::dict &question, const py::dict &root) {
                 Question q = question_of(question);
                 Part part = part_of(root, q);
                 tree.renew(std::move(q), part);
             })
        .def("divide",
             [](Tree &tree, int id, int kind, int side, int layer, int place, int chosen, double at) {
                 return tree.divide(id, {int8_t(kind), int8_t(side), layer, place, chosen, 0.0, at});
             })
        .def("gather", &Tree::gather)
        .def("run", &Tree::run, py::call_guard<py::gil_scoped_release>(), py::arg("seconds"), py::arg("known"),
             py::arg("better"), py::arg("wanted"), py::arg("threads"))
        .def_property_readonly("upper", &Tree::upper)
        .def_property_readonly("open", &Tree::open)
        .def_property_readonly("stuck", &Tree::stuck)
        .def_property_readonly("size", [](const Tree &tree) { return tree.nodes.size(); })
        .def_readonly("bounded", &Tree::bounded)
        .def_readonly("steps", &Tree::steps)
        .def("pairs",
             [](const Tree &tree) {
                 py::list out;
                 for (const Pair &p : tree.pairs) out.append(py::make_tuple(p.gap, array(p.left), array(p.right)));
                 return out;
             })
        .def("points",
             [](const Tree &tree) {
                 py::list out;
                 for (const auto &p : tree.points) out.append(array(p));
                 return out;
             })
        .def("lemmas",
             [](const Tree &tree, int id) {
                 py::list out;
                 for (const Lemma &l : tree.nodes.at(id).lemmas)
                     out.append(py::make_tuple(l.layer, l.neuron, l.sign, l.shown.model, array(l.shown.index),
                                               array(l.shown.value), array(l.shown.mu)));
                 return out;
             })
        .def("node", [](const Tree &tree, int id) {
            const Node &n = tree.nodes.at(id);
            const Split &s = n.split;
            return py::make_tuple(int(n.state), n.child[0], n.child[1],
                                  py::make_tuple(int(s.kind), int(s.side), s.layer, s.place, s.chosen, s.at), n.shown.model,
                                  array(n.shown.index), array(n.shown.value), array(n.shown.mu));
        });
}
