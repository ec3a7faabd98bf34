import { ToolResultEncoderSuite } from "@allm/conformance"
import { ToolResultEncoder } from "@allm/core"

ToolResultEncoderSuite.run("ToolResultEncoder.json", ToolResultEncoder.layer(ToolResultEncoder.json))
ToolResultEncoderSuite.run("ToolResultEncoder.layerJson", ToolResultEncoder.layerJson({ exposeDefects: true }))
