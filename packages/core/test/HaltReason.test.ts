import { HaltReason } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"

describe("HaltReason", () => {
  it("reserves every reason the library gives", () => {
    assert.deepStrictEqual(HaltReason.reserved, [
      "completed",
      "max_turns",
      "halt_when",
      "ask_user",
      "tool_error",
      "manual_tool_calls",
      "approval",
      "max_tool_calls",
      "max_tokens",
      "max_duration",
      "repeated_call",
      "error",
      "cancelled"
    ])
  })

  it("tells a reserved reason from a tool's own", () => {
    assert.deepStrictEqual(HaltReason.reserved.filter((reason) => !HaltReason.isReserved(reason)), [])
    assert.deepStrictEqual(["plan_submitted", "", "Completed", " error", "length"].filter(HaltReason.isReserved), [])
  })
})
