// What streams and hosts wait for, told by callbacks on the calls that say so: recording an event, waiting for one,
// waiting for a stream. CUPTI has activities for it, too, but while they are on, each call of CUDA costs the host 0.1
// to 0.2 us more, and a step of PyTorch makes tens of thousands (docs/validation.md, Cost of capture).
#pragma once

#include <cupti.h>

#include "traces/capture/inject/writer.h"

namespace weft::capture {

// Asks for the callbacks; from then on the subscriber's callbacks of both API domains belong to wait_called().
void watch_waits(CUpti_SubscriberHandle subscriber);

void wait_called(CUpti_CallbackDomain domain, CUpti_CallbackId call, const CUpti_CallbackData& data, Writer& writer);

}  // namespace weft::capture
