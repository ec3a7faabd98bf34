/**
 * The failure of a run whose model asked for a tool that is not there.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * A call names a tool that is not there. Nothing ran.
 *
 * @since 0.1.0
 * @category errors
 */
export class UnknownTool extends Schema.TaggedError<UnknownTool>("@allm/core/UnknownTool")("UnknownTool", {
  toolName: Schema.String,
  toolCallId: Schema.String,
  available: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const names = this.available.length === 0 ? "there are none" : `there are ${this.available.join(", ")}`
    return `no tool is named ${JSON.stringify(this.toolName)}; ${names}. ` +
      "Add it to the tools, or let the model correct itself with unknownTool: \"feedback\""
  }
}
