/** The smallest agent module in JavaScript that has everything a module may have. */
import { Engine, Tool } from "@allm/core"
import { Schema } from "effect"

const clock = Tool.make("clock", {
  description: "A clock that stands still",
  parameters: { zone: Schema.optional(Schema.String) },
  handler: () => ({ zone: "Standing/Still", date: "1999-12-31", time: "23:59:59", weekday: "Friday", offset: "+00:00" })
})

export const instructions = "Be brief."
export const prompt = "What time is it?"

export default Engine.layer({ tools: [clock] })
