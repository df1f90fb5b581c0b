// The kernel as a Python module: a question comes in as arrays, the tree goes out as arrays.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "tree.hpp"

namespace py = pybind11;
using namespace likewise;

template <class T> std::vector<T> list(const py::handle &from) {
    auto array = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(from);
    if (!array) throw py::error_already_set();
    return std::vector<T>(array.data(), array.data() + array.size());
}

template <class T> py::array_t<T> array(const std::vector<T> &from) { return py::array_t<T>(from.size(), from.data()); }

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
    for (int side = 0; side < 2; side++) {
        auto get = [&](const char *name) { return d[(std::string(name) + "_" + sides[side]).c_str()]; };
        layer.v[side] = list<int>(get("v"));
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

static Question question_of(const py::dict &d) {
    Question q;
    Program &p = q.program;
    p.columns = d["columns"].cast<int>();
    p.start = list<int>(d["start"]);
    p.index = list<int>(d["index"]);
    p.value = list<double>(d["value"]);
    p.rows = int(p.start.size()) - 1;
    p.goal = d["goal"].cast<int>();
    p.kept = list<uint8_t>(d["kept"]);
    p.zero = list<uint8_t>(d["zero"]);
    std::vector<int> rows = list<int>(d["solved_rows"]), columns = list<int>(d["solved_columns"]);
    for (size_t k = 0; k < rows.size(); k++) p.solved.emplace_back(rows[k], columns[k]);
    p.given = list<double>(d["given"]);
    p.transpose();
    q.low = list<double>(d["low"]);
    q.high = list<double>(d["high"]);
    if (d.contains("ball_columns")) {
        Ball &ball = p.ball;
        ball.columns = list<int>(d["ball_columns"]);
        ball.full = list<double>(d["ball_full"]);
        ball.turn = list<double>(d["ball_turn"]);
        ball.turned = list<double>(d["ball_turned"]);
        ball.eps = d["ball_eps"].cast<double>();
        ball.height = int(ball.full.size() / ball.columns.size());
        ball.directions = int(ball.turned.size() / ball.columns.size());
    }
    p.jostle(q.low, q.high, NUDGE);
    q.low.push_back(1.0);
    q.high.push_back(1.0);
    for (const py::handle &one : d["layers"]) {
        q.layers.push_back(layer_of(one.cast<py::dict>(), q.neurons));
        q.neurons += q.layers.back().height;
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

PYBIND11_MODULE(_kernel, m) {
    m.doc() = "The branch and bound over relu networks, compiled. Its arrays are described in likewise.search.compiled.";
    m.def(
        "solve",
        [](const py::dict &question, long most) {
            Question q = question_of(question);
            Tableau tableau(q.program);
            Ended ended = tableau.solve(q.low.data(), q.high.data(), -INF, most);
            Multipliers y = tableau.multipliers();
            std::vector<double> x(q.low.size());
            tableau.point(x);
            return py::make_tuple(int(ended), tableau.objective(), q.program.bound(y, q.low.data(), q.high.data()),
                                  tableau.pivots, array(x), array(y.rows));
        },
        "Maximise the goal over the whole: how it ended (0: at the optimum), objective, proven bound, steps, x, y.");
    py::class_<Tree>(m, "Tree")
        .def(py::init([](const py::dict &question, const py::dict &root) {
            Question q = question_of(question);
            Part part = part_of(root, q);
            return std::make_unique<Tree>(std::move(q), std::move(part));
        }))
        .def("renew", [](Tree &tree, const py::dict &question) { tree.renew(question_of(question)); })
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
        .def("node", [](const Tree &tree, int id) {
            const Node &n = tree.nodes.at(id);
            const Split &s = n.split;
            return py::make_tuple(int(n.state), n.child[0], n.child[1],
                                  py::make_tuple(int(s.kind), int(s.side), s.layer, s.place, s.chosen), n.model,
                                  array(n.index), array(n.value), array(n.mu));
        });
}
