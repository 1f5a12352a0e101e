// SPDX-License-Identifier: BSD-3-Clause
//
// generator: see generator.h. The state is upstream's 36 bytes: seven words (one unused, four of counter, two of key) and the seed.
#include "bridge/generator.h"

#include <ATen/Utils.h>

#include "bridge/bridge.h"

namespace openmps {

namespace {

struct State {
  uint32_t unused;
  uint32_t counter[4]; // the offset in the first two
  uint32_t key[2];
  uint32_t seed[2]; // a uint64_t without padding before it
};
static_assert(sizeof(State) == 36, "the size that torch.mps.get_rng_state() has upstream");

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(uint64_t seed) : c10::GeneratorImpl(kDevice, c10::DispatchKeySet(c10::DispatchKey::MPS)) {
    check(mps_generator_create(seed, &philox_));
  }
  ~Generator() override { mps_generator_destroy(philox_); }

  mps_generator *philox() const { return philox_; }

  void set_current_seed(uint64_t seed) override { mps_generator_set_seed(philox_, seed); }
  uint64_t current_seed() const override { return mps_generator_seed(philox_); }
  void set_offset(uint64_t offset) override { mps_generator_set_offset(philox_, offset); }
  uint64_t get_offset() const override { return mps_generator_offset(philox_); }

  uint64_t seed() override {
    const uint64_t random = c10::detail::getNonDeterministicRandom();
    set_current_seed(random);
    return random;
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const uint64_t seed = current_seed(), offset = get_offset();
    State state = {1, {}, {}, {}};
    memcpy(state.counter, &offset, sizeof offset);
    memcpy(state.key, &seed, sizeof seed);
    memcpy(state.seed, &seed, sizeof seed);
    at::Tensor bytes = at::detail::empty_cpu({static_cast<int64_t>(sizeof state)}, at::kByte);
    memcpy(bytes.mutable_data_ptr(), &state, sizeof state);
    return bytes.getIntrusivePtr();
  }

  void set_state(const c10::TensorImpl &bytes) override {
    at::detail::check_rng_state(bytes);
    TORCH_CHECK(bytes.numel() == static_cast<int64_t>(sizeof(State)), "RNG state is wrong size");
    State state;
    memcpy(&state, bytes.data(), sizeof state);
    uint64_t seed = 0, offset = 0;
    memcpy(&seed, state.seed, sizeof seed);
    memcpy(&offset, state.counter, sizeof offset);
    set_current_seed(seed);
    set_offset(offset);
  }

 private:
  Generator *clone_impl() const override {
    auto *copy = new Generator(current_seed());
    copy->set_offset(get_offset());
    return copy;
  }

  mps_generator *philox_ = nullptr;
};

}  // namespace

const at::Generator &default_generator() {
  static const at::Generator *const it = new at::Generator(at::make_generator<Generator>(c10::detail::getNonDeterministicRandom()));
  return *it;
}

at::Generator new_generator() { return at::make_generator<Generator>(c10::default_rng_seed_val); }

mps_generator *generator(const std::optional<at::Generator> &value) {
  const at::Generator &chosen = value.has_value() && value->defined() ? *value : default_generator();
  TORCH_CHECK(chosen.device().is_mps(), "Expected a 'mps' device type for generator but found '", chosen.device().type(), "'");
  return static_cast<Generator *>(chosen.unsafeGetGeneratorImpl())->philox();
}

}  // namespace openmps
