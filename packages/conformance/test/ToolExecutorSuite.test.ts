import { ToolExecutorSuite } from "@allm/conformance"
import { ToolExecutor } from "@allm/core"

ToolExecutorSuite.run("ToolExecutor.handlers", ToolExecutor.layer(ToolExecutor.handlers))
ToolExecutorSuite.run("ToolExecutor.layerHandlers", (handlers) => ToolExecutor.layerHandlers(handlers))
ToolExecutorSuite.run("ToolExecutor.layerHandlers beside own handlers", ToolExecutor.layerHandlers({}))
