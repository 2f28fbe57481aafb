// A list whose copies share their elements until one of them is written: thousands of GPUs that execute the same
// program hold it once.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace weft {

template <class T>
class SharedList {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;

  SharedList() = default;
  SharedList(std::vector<T> elements)  // NOLINT(google-explicit-constructor): a vector is a list
      : elements_(std::make_shared<std::vector<T>>(std::move(elements))) {}
  SharedList(std::initializer_list<T> elements) : SharedList(std::vector<T>(elements)) {}

  [[nodiscard]] const_iterator begin() const { return read().begin(); }
  [[nodiscard]] const_iterator end() const { return read().end(); }
  [[nodiscard]] std::size_t size() const { return read().size(); }
  [[nodiscard]] bool empty() const { return read().empty(); }
  [[nodiscard]] const T& operator[](std::size_t i) const { return read()[i]; }
  [[nodiscard]] const T& at(std::size_t i) const { return read().at(i); }
  [[nodiscard]] const T& front() const { return read().front(); }
  [[nodiscard]] const T& back() const { return read().back(); }
  [[nodiscard]] bool shares(const SharedList& other) const { return elements_ == other.elements_; }

  // To write: the elements of this list alone. Hold no reference to it across a copy of the list.
  [[nodiscard]] std::vector<T>& edit() {
    if (!elements_) elements_ = std::make_shared<std::vector<T>>();
    if (elements_.use_count() > 1) elements_ = std::make_shared<std::vector<T>>(*elements_);
    return *elements_;
  }
  void push_back(T element) { edit().push_back(std::move(element)); }

 private:
  [[nodiscard]] const std::vector<T>& read() const {
    static const std::vector<T> nothing;
    return elements_ ? *elements_ : nothing;
  }

  std::shared_ptr<std::vector<T>> elements_;  // none: empty
};

}  // namespace weft
