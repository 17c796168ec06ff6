/* The radial basis in double precision. */
#include <math.h>
#include <stddef.h>

#include "kernels/rbf/rbf.h"

double rbf_reference(double distance, double center, double gamma, double cutoff,
                     double *derivative)
{
    const double pi = 3.14159265358979323846;
    double t = distance - center, gauss = exp(-gamma * t * t);
    double angle = pi * distance / cutoff;
    double c = distance < cutoff ? 0.5 * (cos(angle) + 1) : 0;
    double slope = distance < cutoff ? -0.5 * pi / cutoff * sin(angle) : 0;

    if (derivative)
        *derivative = gauss * (slope - 2 * gamma * t * c);
    return gauss * c;
}
