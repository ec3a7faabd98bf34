/** One turn of a travel agent: eight tool calls at once, most of which go wrong, and none of which harms another. */
import { Tool, ToolCall, ToolResult, ToolRunner } from "@allm/core"
import { Effect, Schema } from "effect"
import * as BatchView from "./lib/BatchView.ts"
import * as Screen from "./lib/Screen.ts"

const getWeather = Tool.make("get_weather", {
  description: "Weather of a city",
  parameters: { city: Schema.String },
  handler: ({ city }) => Effect.as(Effect.sleep("400 millis"), { city, sky: "clear", degrees: 21 })
})

const searchFlights = Tool.make("search_flights", {
  description: "Asks four airlines, one after the other, and tells how far it is",
  handler: (_, context) =>
    Effect.forEach([1, 2, 3, 4], (done) => Effect.delay(context.progress({ done, of: 4 }), "650 millis")).pipe(
      Effect.as("SK 1472 at 09:40, 129 EUR")
    )
})

const bookHotel = Tool.make("book_hotel", {
  description: "Reports a failure the model may read",
  handler: () => Effect.delay(Effect.fail("no rooms left"), "1050 millis")
})

const callMuseum = Tool.make("call_museum", {
  description: "Never answers",
  timeout: "1500 millis",
  handler: () => new Promise<string>(() => {})
})

const sendFax = Tool.make("send_fax", {
  description: "Never answers, and cannot be interrupted",
  timeout: "2200 millis",
  handler: () => Effect.uninterruptible(Effect.promise(() => new Promise<string>(() => {})))
})

const exchangeRate = Tool.make("exchange_rate", {
  description: "Crashes, with a secret in the message",
  handler: async (): Promise<number> => {
    await Effect.runPromise(Effect.sleep("450 millis"))
    throw new Error("no route to db.internal, password hunter2")
  }
})

const setBudget = Tool.make("set_budget", {
  description: "Is called with arguments of the wrong type, so it never runs",
  parameters: { euros: Schema.Number },
  handler: ({ euros }) => `budget is ${euros}`
})

const submitPlan = Tool.make("submit_plan", {
  description: "Ends the loop; the other calls may finish",
  handler: () => Effect.as(Effect.sleep("900 millis"), ToolResult.halt("plan_submitted", { days: 3 }))
})

const calls = [
  ToolCall.make({ id: "call_0", name: "get_weather", arguments: { city: "Oslo" } }),
  ToolCall.make({ id: "call_1", name: "search_flights", arguments: {} }),
  ToolCall.make({ id: "call_2", name: "book_hotel", arguments: {} }),
  ToolCall.make({ id: "call_3", name: "call_museum", arguments: {} }),
  ToolCall.make({ id: "call_4", name: "send_fax", arguments: {} }),
  ToolCall.make({ id: "call_5", name: "exchange_rate", arguments: {} }),
  ToolCall.make({ id: "call_6", name: "set_budget", arguments: { euros: "plenty" } }),
  ToolCall.make({ id: "call_7", name: "submit_plan", arguments: {} })
]

const tools = [getWeather, searchFlights, bookHotel, callMuseum, sendFax, exchangeRate, setBudget, submitPlan]

Screen.main(BatchView.show(calls, ToolRunner.stream(calls, tools, { concurrency: 5 })))
