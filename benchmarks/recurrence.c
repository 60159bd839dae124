/* The recurrence of Linear TreeSHAP (Yu, Bifet, Read and Xu, NeurIPS 2022) in its interpolation form, a
 * row at a time: see doc/path_dependent.rst for what it computes, and for the digits that it loses. */
#include <stdlib.h>
#include <string.h>

typedef struct {
    const int *left, *right, *feature;
    const int *degree;                       /* features on the longest path through a node */
    const double *threshold, *ratio, *value; /* ratio: cover of a node in that of its parent */
    int n_points;                            /* at least the number of features on a path */
    const double *point;
    const double *weight;   /* weight[d * n_points:]: of psi for polynomials of degree d - 1 */
    const double *power;    /* power[k * n_points:]: (1 + y)^k, which raises a degree */
    double *room;           /* two vectors a level */
    double *quotient;       /* of each feature p / q above, negative where it was not tested */
    int *tested;            /* and the node below the last of its tests above */
    const float *x;
    double *phi;
} Walk;

/* Of the sum below a node, raised to the degree of a node above. */
static double psi(const Walk *walk, const double *sum, double quotient, int degree, int lift)
{
    const double *const weight = walk->weight + degree * walk->n_points;
    const double *const power = walk->power + lift * walk->n_points;
    double total = 0.0;
    for (int i = 0; i < walk->n_points; i++)
        total += sum[i] * power[i] / (walk->point[i] + quotient) * weight[i];
    return total;
}

/* Leave at room[2 * depth] the sum of the summary polynomials of all leaves below, raised to the
 * largest degree of them. */
static void visit(Walk *walk, int node, int depth, double share)
{
    const int n = walk->n_points;
    double *const sum = walk->room + 2 * depth * n, *const product = sum + n;
    if (walk->left[node] < 0) {
        for (int i = 0; i < n; i++)
            sum[i] = product[i] * share * walk->value[node];
        return;
    }
    const int feature = walk->feature[node], is_new = walk->quotient[feature] < 0;
    const double above = walk->quotient[feature];
    const int child[2] = {walk->left[node], walk->right[node]};
    const int taken = !(walk->x[feature] <= walk->threshold[node]);
    double *const below = sum + 2 * n, *const product_below = below + n;
    const int tested = walk->tested[feature];
    for (int side = 0; side < 2; side++) {
        const double ratio = walk->ratio[child[side]];
        const double quotient = side != taken ? 0.0 : (is_new ? 1.0 : above) / ratio;
        for (int i = 0; i < n; i++)
            product_below[i] = product[i] * (walk->point[i] + quotient);
        if (!is_new)
            for (int i = 0; i < n; i++)
                product_below[i] /= walk->point[i] + above;
        walk->quotient[feature] = quotient;
        walk->tested[feature] = child[side];
        visit(walk, child[side], depth + 1, share * ratio);
        const int degree = walk->degree[child[side]];
        walk->phi[feature] += (quotient - 1) * psi(walk, below, quotient, degree, 0);
        if (!is_new) {
            const int other = walk->degree[tested];
            walk->phi[feature] -= (above - 1) * psi(walk, below, above, other, other - degree);
        }
        const double *const lift = walk->power + (walk->degree[node] - degree) * n;
        for (int i = 0; i < n; i++)
            sum[i] = side ? sum[i] + below[i] * lift[i] : below[i] * lift[i];
    }
    walk->quotient[feature] = above;
    walk->tested[feature] = tested;
}

void explain(const int *left, const int *right, const int *feature, const int *degree,
             const double *threshold, const double *ratio, const double *value, int depth, int n_points, const double *point,
             const double *weight, const double *power, const float *X, int n_rows, int n_features,
             double *phi)
{
    Walk walk = {left, right, feature, degree, threshold, ratio, value, n_points, point, weight, power};
    walk.room = malloc(2 * (depth + 2) * n_points * sizeof(double));
    walk.quotient = malloc(n_features * sizeof(double));
    walk.tested = calloc(n_features, sizeof(int));
    for (int r = 0; r < n_rows; r++) {
        for (int j = 0; j < n_features; j++)
            walk.quotient[j] = -1.0;
        for (int i = 0; i < n_points; i++)
            walk.room[n_points + i] = 1.0;
        walk.x = X + (long)r * n_features;
        walk.phi = phi + (long)r * n_features;
        visit(&walk, 0, 0, 1.0);
    }
    free(walk.room);
    free(walk.quotient);
    free(walk.tested);
}
