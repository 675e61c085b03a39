#include "tools/emulated_gpu/device/graph_text.h"

#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>

#include "tools/emulated_gpu/device/graph_plan.h"
#include "tools/emulated_gpu/device/stacks.h"

namespace weir::emulated {
namespace {

std::string Hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

std::string Bytes(const Rows& rows) {
  const std::string width = std::to_string(rows.width) + " bytes";
  return rows.height == 1 ? width : std::to_string(rows.height) + " rows of " + width;
}

struct Describe {
  std::string operator()(const EmptyWork&) const { return "empty"; }
  std::string operator()(const KernelWork& work) const {
    std::string text = Demangled(work.what);
    if (work.kernel == nullptr) return text;
    char shape[96];
    std::snprintf(shape, sizeof shape, "\ngrid %u %u %u, block %u %u %u", work.shape.grid[0],
                  work.shape.grid[1], work.shape.grid[2], work.shape.block[0], work.shape.block[1],
                  work.shape.block[2]);
    return text + shape;
  }
  std::string operator()(const CopyWork& work) const {
    return "memcpy " + Bytes(work.rows) + "\n" + Hex(work.from) + " to " + Hex(work.to);
  }
  std::string operator()(const FillWork& work) const {
    return "memset " + Bytes(work.rows) + "\nat " + Hex(work.to);
  }
  std::string operator()(const HostFunctionWork& work) const {
    return "host function " + Hex(reinterpret_cast<void*>(work.function));
  }
  std::string operator()(const EventRecordWork& work) const { return "record event " + Hex(work.event); }
  std::string operator()(const EventWaitWork& work) const { return "wait for event " + Hex(work.event); }
  std::string operator()(const ChildGraphWork& work) const {
    return "graph of " + std::to_string(work.plan->nodes.size()) + " nodes";
  }
};

// A string of the dot language.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  }
  return quoted + '"';
}

}  // namespace

Status WriteDot(CUgraph handle, const char* path) {
  const Graph* graph = FindGraph(handle, "graph print");
  if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string text = "digraph dot {\n";
  {
    std::lock_guard<std::mutex> lock(GraphMutex());
    for (const GraphNode* node : graph->nodes) {
      const std::string name = "node_" + std::to_string(node->number);
      const std::string label = std::to_string(node->number) + "\n" + std::visit(Describe(), node->work);
      text += "  " + name + " [shape=box, label=" + Quoted(label) + "];\n";
      for (const GraphNode* before : node->after) {
        text += "  node_" + std::to_string(before->number) + " -> " + name + ";\n";
      }
    }
  }
  std::ofstream file(path);
  file << text << "}\n";
  return file.flush() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace weir::emulated
