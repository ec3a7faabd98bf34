import { Session } from "@allm/core"
import { describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Arbitrary, Schema } from "effect"

// The one JSON value that does not survive its own round trip.
const settled = <A>(value: A): A => {
  if (typeof value !== "object" || value === null) return value
  for (const [key, member] of Object.entries(value)) {
    if (Object.is(member, -0)) Reflect.set(value, key, 0)
    else settled(member)
  }
  return value
}

describe("Session", () => {
  it.prop(
    "SES-59 SER-01 SER-12 goes to JSON and back in every status, with what is pending",
    [Arbitrary.make(Session.Session).map(settled)],
    ([session]) => {
      const text = JSON.stringify(Schema.encodeSync(Session.Session)(session))

      deepStrictEqual(Schema.decodeUnknownSync(Session.Session)(JSON.parse(text)), session)
    },
    { fastCheck: { numRuns: 200 } }
  )
})
