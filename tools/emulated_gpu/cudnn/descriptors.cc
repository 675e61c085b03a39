// cudnnBackend*: making, filling and reading descriptors.
#include <algorithm>

#include "tools/emulated_gpu/cudnn/graph.h"

using namespace weir::emulated;

namespace weir::emulated {
namespace {

auto& descriptors = *new Live<GraphDescriptor>("backend descriptor");

size_t BytesOfElement(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_FRACTION:
      return sizeof(cudnnFraction_t);
    default:
      return 4;  // float, int32 and the enumerations
  }
}

}  // namespace

const Attribute* GraphDescriptor::Find(cudnnBackendAttributeName_t name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

const std::vector<std::shared_ptr<const GraphDescriptor>>& GraphDescriptor::Parts(
    cudnnBackendAttributeName_t name) const {
  static const auto& none = *new std::vector<std::shared_ptr<const GraphDescriptor>>;
  const Attribute* found = Find(name);
  return found == nullptr ? none : found->parts;
}

const GraphDescriptor* GraphDescriptor::Part(cudnnBackendAttributeName_t name) const {
  const auto& parts = Parts(name);
  return parts.empty() ? nullptr : parts.front().get();
}

void GraphDescriptor::SetInt64(cudnnBackendAttributeName_t name, int64_t value) {
  Attribute& attribute = attributes[name];
  attribute = {CUDNN_TYPE_INT64, 1, std::vector<char>(sizeof value), {}};
  std::memcpy(attribute.bytes.data(), &value, sizeof value);
}

}  // namespace weir::emulated

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  GraphDescriptor* made = descriptors.Make();
  made->type = type;
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return descriptors.Destroy(descriptor, "cudnnBackendDestroyDescriptor");
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t opaque, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements) {
  const auto descriptor = descriptors.Find(opaque, "cudnnBackendSetAttribute");
  if (descriptor == nullptr || count < 0) return CUDNN_STATUS_BAD_PARAM;
  if (count > 0 && elements == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (descriptor->finalized) return CUDNN_STATUS_NOT_INITIALIZED;  // documented: it can no longer be set
  Attribute attribute{type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* parts = static_cast<const cudnnBackendDescriptor_t*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      auto part = descriptors.Find(parts[i], "cudnnBackendSetAttribute");
      if (part == nullptr) return CUDNN_STATUS_BAD_PARAM;
      attribute.parts.push_back(std::move(part));
    }
  } else {
    const auto* bytes = static_cast<const char*>(elements);
    attribute.bytes.assign(bytes, bytes + count * BytesOfElement(type));
  }
  descriptor->attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

// Documented: descriptors among the elements are filled, not made.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const opaque,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t wanted, int64_t* count, void* elements) {
  const auto descriptor = descriptors.Find(opaque, "cudnnBackendGetAttribute");
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (!descriptor->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const Attribute* attribute = descriptor->Find(name);
  const int64_t found = attribute == nullptr ? 0 : attribute->count;
  if (count != nullptr) *count = found;
  if (found == 0 || elements == nullptr) return CUDNN_STATUS_SUCCESS;
  if (attribute->type != type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  const int64_t given = std::min(wanted, found);
  if (count != nullptr) *count = given;  // callers make a list of that length of what they gave
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::memcpy(elements, attribute->bytes.data(), given * BytesOfElement(type));
    return CUDNN_STATUS_SUCCESS;
  }
  auto* targets = static_cast<cudnnBackendDescriptor_t*>(elements);
  for (int64_t i = 0; i < given; ++i) {
    const auto target = descriptors.Find(targets[i], "cudnnBackendGetAttribute");
    if (target == nullptr) return CUDNN_STATUS_BAD_PARAM;
    *target = *attribute->parts[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t opaque) {
  const auto descriptor = descriptors.Find(opaque, "cudnnBackendFinalize");
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const cudnnStatus_t status = FinalizeGraphDescriptor(*descriptor);
  descriptor->finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t opaque_plan,
                                  cudnnBackendDescriptor_t opaque_pack) {
  const auto plan = descriptors.Find(opaque_plan, "cudnnBackendExecute");
  const auto pack = descriptors.Find(opaque_pack, "cudnnBackendExecute");
  if (plan == nullptr || pack == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return ExecutePlan(handle, *plan, *pack);
}
}
