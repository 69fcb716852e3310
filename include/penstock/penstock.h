#pragma once

// All of Penstock's public interface: describe a network (or name one), say how much memory there is, train.
// Errors are exceptions: penstock::UserError for what the caller can mend, penstock::RunError for failures at
// run time.

#include "penstock/errors.h"
#include "penstock/network.h"
#include "penstock/options.h"
#include "penstock/ranks.h"
#include "penstock/session.h"
#include "penstock/step_stats.h"
#include "penstock/training.h"
