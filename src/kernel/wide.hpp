// Wide: the inner loops of the simplex method and of annealing, with four numbers at a time where the processor can.
#pragma once
#include <cstddef>
#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#endif

namespace likewise {

// y += f * x, and the sum of squares of what comes out; and x.y.
inline double add_times_plain(double *y, const double *x, double f, int n) {
    double squares = 0;
    for (int k = 0; k < n; k++) {
        y[k] += f * x[k];
        squares += y[k] * y[k];
    }
    return squares;
}

// The same, and x.y of what comes out.
inline double add_along_plain(double *y, const double *x, double f, int n, double &along) {
    const double squares = add_times_plain(y, x, f, n);
    along = 0;
    for (int k = 0; k < n; k++) along += x[k] * y[k];
    return squares;
}

// y += f_0 x_0 + ... of up to four rows x.
inline void add_rows_plain(double *y, const double *x, int stride, const double *f, int count, int n) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < n; k++) y[k] += f[i] * x[i * stride + k];
}

inline double dot_plain(const double *x, const double *y, int n) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += x[k] * y[k];
    return sum;
}

// out = w in, for a matrix w and N columns side by side.
template <int N> void multiply_plain(double *out, const double *w, const double *in, int rows, int columns) {
    for (int r = 0; r < rows; r++) {
        double sums[N] = {};
        for (int c = 0; c < columns; c++)
            for (int l = 0; l < N; l++) sums[l] += w[std::size_t(r) * columns + c] * in[c * N + l];
        for (int l = 0; l < N; l++) out[r * N + l] = sums[l];
    }
}

#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("avx2,fma"))) inline double total(__m256d v) {
    double each[4];
    _mm256_storeu_pd(each, v);
    return (each[0] + each[1]) + (each[2] + each[3]);
}

__attribute__((target("avx2,fma"))) inline double add_times_wide(double *y, const double *x, double f, int n) {
    __m256d factor = _mm256_set1_pd(f), one = _mm256_setzero_pd(), other = one;
    int k = 0;
    for (; k + 8 <= n; k += 8) {
        __m256d a = _mm256_fmadd_pd(factor, _mm256_loadu_pd(x + k), _mm256_loadu_pd(y + k));
        __m256d b = _mm256_fmadd_pd(factor, _mm256_loadu_pd(x + k + 4), _mm256_loadu_pd(y + k + 4));
        _mm256_storeu_pd(y + k, a);
        _mm256_storeu_pd(y + k + 4, b);
        one = _mm256_fmadd_pd(a, a, one);
        other = _mm256_fmadd_pd(b, b, other);
    }
    return total(_mm256_add_pd(one, other)) + add_times_plain(y + k, x + k, f, n - k);
}

__attribute__((target("avx2,fma"))) inline double add_along_wide(double *y, const double *x, double f, int n, double &along) {
    const __m256d factor = _mm256_set1_pd(f);
    __m256d one = _mm256_setzero_pd(), other = one, way = one, away = one;
    int k = 0;
    for (; k + 8 <= n; k += 8) {
        const __m256d u = _mm256_loadu_pd(x + k), v = _mm256_loadu_pd(x + k + 4);
        const __m256d a = _mm256_fmadd_pd(factor, u, _mm256_loadu_pd(y + k));
        const __m256d b = _mm256_fmadd_pd(factor, v, _mm256_loadu_pd(y + k + 4));
        _mm256_storeu_pd(y + k, a);
        _mm256_storeu_pd(y + k + 4, b);
        one = _mm256_fmadd_pd(a, a, one);
        other = _mm256_fmadd_pd(b, b, other);
        way = _mm256_fmadd_pd(a, u, way);
        away = _mm256_fmadd_pd(b, v, away);
    }
    const double squares = total(_mm256_add_pd(one, other)) + add_along_plain(y + k, x + k, f, n - k, along);
    along += total(_mm256_add_pd(way, away));
    return squares;
}

__attribute__((target("avx512f"))) inline double dot_widest(const double *x, const double *y, int n) {
    __m512d one = _mm512_setzero_pd(), other = one;
    for (int k = 0; k < n; k += 16) {
        const int rest = n - k;
        const __mmask8 here = rest >= 8 ? 0xff : __mmask8((1 << rest) - 1);
        const __mmask8 there = rest >= 16 ? 0xff : rest > 8 ? __mmask8((1 << (rest - 8)) - 1) : 0;
        one = _mm512_fmadd_pd(_mm512_maskz_loadu_pd(here, x + k), _mm512_maskz_loadu_pd(here, y + k), one);
        other = _mm512_fmadd_pd(_mm512_maskz_loadu_pd(there, x + k + 8), _mm512_maskz_loadu_pd(there, y + k + 8), other);
    }
    return _mm512_reduce_add_pd(_mm512_add_pd(one, other));
}

__attribute__((target("avx512f"))) inline double add_along_widest(double *y, const double *x, double f, int n, double &along) {
    const __m512d factor = _mm512_set1_pd(f);
    __m512d one = _mm512_setzero_pd(), other = one, way = one, away = one;
    for (int k = 0; k < n; k += 16) {
        const int rest = n - k;
        const __mmask8 here = rest >= 8 ? 0xff : __mmask8((1 << rest) - 1);
        const __mmask8 there = rest >= 16 ? 0xff : rest > 8 ? __mmask8((1 << (rest - 8)) - 1) : 0;
        const __m512d u = _mm512_maskz_loadu_pd(here, x + k), v = _mm512_maskz_loadu_pd(there, x + k + 8);
        const __m512d a = _mm512_fmadd_pd(factor, u, _mm512_maskz_loadu_pd(here, y + k));
        const __m512d b = _mm512_fmadd_pd(factor, v, _mm512_maskz_loadu_pd(there, y + k + 8));
        _mm512_mask_storeu_pd(y + k, here, a);
        _mm512_mask_storeu_pd(y + k + 8, there, b);
        one = _mm512_fmadd_pd(a, a, one);
        other = _mm512_fmadd_pd(b, b, other);
        way = _mm512_fmadd_pd(a, u, way);
        away = _mm512_fmadd_pd(b, v, away);
    }
    along = _mm512_reduce_add_pd(_mm512_add_pd(way, away));
    return _mm512_reduce_add_pd(_mm512_add_pd(one, other));
}

__attribute__((target("avx2,fma"))) inline void add_rows_wide(double *y, const double *x, int stride, const double *f, int count,
                                                              int n) {
    if (count < 4) return add_rows_plain(y, x, stride, f, count, n);
    const double *a = x, *b = x + stride, *c = b + stride, *d = c + stride;
    __m256d fa = _mm256_set1_pd(f[0]), fb = _mm256_set1_pd(f[1]), fc = _mm256_set1_pd(f[2]), fd = _mm256_set1_pd(f[3]);
    int k = 0;
    for (; k + 4 <= n; k += 4) {
        __m256d one = _mm256_fmadd_pd(fa, _mm256_loadu_pd(a + k), _mm256_loadu_pd(y + k));
        __m256d other = _mm256_mul_pd(fb, _mm256_loadu_pd(b + k));
        one = _mm256_fmadd_pd(fc, _mm256_loadu_pd(c + k), one);
        other = _mm256_fmadd_pd(fd, _mm256_loadu_pd(d + k), other);
        _mm256_storeu_pd(y + k, _mm256_add_pd(one, other));
    }
    for (; k < n; k++) y[k] += (f[0] * a[k] + f[1] * b[k]) + (f[2] * c[k] + f[3] * d[k]);
}

__attribute__((target("avx2,fma"))) inline double dot_wide(const double *x, const double *y, int n) {
    __m256d one = _mm256_setzero_pd(), other = one;
    int k = 0;
    for (; k + 8 <= n; k += 8) {
        one = _mm256_fmadd_pd(_mm256_loadu_pd(x + k), _mm256_loadu_pd(y + k), one);
        other = _mm256_fmadd_pd(_mm256_loadu_pd(x + k + 4), _mm256_loadu_pd(y + k + 4), other);
    }
    return total(_mm256_add_pd(one, other)) + dot_plain(x + k, y + k, n - k);
}

// ROWS rows of the above: as many sums as there are registers for.
template <int N, int ROWS>
__attribute__((target("avx2,fma"))) inline void multiply_rows(double *out, const double *w, const double *in, int columns) {
    __m256d sums[ROWS][N / 4];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < N / 4; v++) sums[r][v] = _mm256_setzero_pd();
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < ROWS; r++) {
            const __m256d factor = _mm256_broadcast_sd(w + std::size_t(r) * columns + c);
            for (int v = 0; v < N / 4; v++)
                sums[r][v] = _mm256_fmadd_pd(factor, _mm256_loadu_pd(in + c * N + 4 * v), sums[r][v]);
        }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < N / 4; v++) _mm256_storeu_pd(out + r * N + 4 * v, sums[r][v]);
}

template <int N>
__attribute__((target("avx2,fma"))) void multiply_wide(double *out, const double *w, const double *in, int rows, int columns) {
    constexpr int ROWS = 32 / N;
    int r = 0;
    for (; r + ROWS <= rows; r += ROWS) multiply_rows<N, ROWS>(out + r * N, w + std::size_t(r) * columns, in, columns);
    for (; r < rows; r++) multiply_rows<N, 1>(out + r * N, w + std::size_t(r) * columns, in, columns);
}

inline const bool WIDE = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
inline double add_times(double *y, const double *x, double f, int n) {
    return WIDE ? add_times_wide(y, x, f, n) : add_times_plain(y, x, f, n);
}
inline const bool WIDEST = __builtin_cpu_supports("avx512f");
inline double add_along(double *y, const double *x, double f, int n, double &along) {
    if (WIDEST) return add_along_widest(y, x, f, n, along);
    return WIDE ? add_along_wide(y, x, f, n, along) : add_along_plain(y, x, f, n, along);
}
inline void add_rows(double *y, const double *x, int stride, const double *f, int count, int n) {
    WIDE ? add_rows_wide(y, x, stride, f, count, n) : add_rows_plain(y, x, stride, f, count, n);
}
inline double dot(const double *x, const double *y, int n) {
    return WIDEST ? dot_widest(x, y, n) : WIDE ? dot_wide(x, y, n) : dot_plain(x, y, n);
}
template <int N> void multiply(double *out, const double *w, const double *in, int rows, int columns) {
    WIDE ? multiply_wide<N>(out, w, in, rows, columns) : multiply_plain<N>(out, w, in, rows, columns);
}
#else
template <int N> void multiply(double *out, const double *w, const double *in, int rows, int columns) {
    multiply_plain<N>(out, w, in, rows, columns);
}
inline void add_rows(double *y, const double *x, int stride, const double *f, int count, int n) {
    add_rows_plain(y, x, stride, f, count, n);
}
inline double add_times(double *y, const double *x, double f, int n) { return add_times_plain(y, x, f, n); }
inline double add_along(double *y, const double *x, double f, int n, double &along) { return add_along_plain(y, x, f, n, along); }
inline double dot(const double *x, const double *y, int n) { return dot_plain(x, y, n); }
#endif

}  // namespace likewise
