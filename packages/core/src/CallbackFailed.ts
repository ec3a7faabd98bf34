/**
 * The failure of a chat whose caller's own function threw.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { ChatResult } from "./ChatResult.ts"
import { Opaque } from "./internal/json.ts"

/**
 * A function given to the loop threw, failed or returned something else than it should. `result` holds everything up to
 * there: no message and no tool result is lost.
 *
 * @since 0.1.0
 * @category errors
 */
export class CallbackFailed extends Schema.TaggedError<CallbackFailed>("@allm/core/CallbackFailed")("CallbackFailed", {
  callback: Schema.Literal("haltWhen", "prepareStep", "onEvent"),
  detail: Schema.String,
  result: ChatResult,
  cause: Schema.optionalWith(Schema.Cause({ error: Opaque, defect: Schema.Defect }), { exact: true })
}) {
  override get message(): string {
    return `${this.callback} ${this.detail}; the chat so far is in \`result\``
  }
}
