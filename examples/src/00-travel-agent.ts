/** An agent at work, live in the terminal: four turns, ten tool calls, many of which go wrong, and an answer. */
import { Allm, Engine, Tool } from "@allm/core"
import { Effect, Layer, Schema } from "effect"
import * as ChatView from "./lib/ChatView.ts"
import * as Screen from "./lib/Screen.ts"
import * as TravelModel from "./lib/TravelModel.ts"

const getWeather = Tool.make("get_weather", {
  description: "Weather of a city",
  parameters: { city: Schema.String },
  handler: ({ city }) => Effect.delay(Effect.succeed({ city, sky: "clear", degrees: 21 }), "400 millis")
})

const searchFlights = Tool.make("search_flights", {
  description: "Asks four airlines, one after the other, and tells how far it is",
  parameters: { to: Schema.String },
  handler: (_, { progress }) =>
    Effect.forEach([1, 2, 3, 4], (done) => Effect.delay(progress({ done, of: 4 }), "450 millis")).pipe(
      Effect.as("SK 1472 at 09:40, 129 EUR")
    )
})

const bookHotel = Tool.make("book_hotel", {
  description: "Books three nights, or reports why it cannot",
  parameters: { hotel: Schema.String },
  handler: ({ hotel }) =>
    Effect.delay(hotel === "Grand" ? Effect.fail("no rooms left") : Effect.succeed(`booked: ${hotel}`), "1050 millis")
})

const exchangeRate = Tool.make("exchange_rate", {
  description: "Crashes, with a secret in the message",
  handler: () => Effect.delay(Effect.die(new Error("no route to db.internal, password hunter2")), "700 millis")
})

const callMuseum = Tool.make("call_museum", {
  description: "Never answers",
  timeout: "1500 millis",
  handler: () => new Promise<string>(() => {})
})

const sendFax = Tool.make("send_fax", {
  description: "Never answers, and cannot be interrupted",
  timeout: "1200 millis",
  handler: () => Effect.uninterruptible(Effect.promise(() => new Promise<string>(() => {})))
})

const setBudget = Tool.make("set_budget", {
  description: "Sets what the journey may cost",
  parameters: { euros: Schema.Number },
  handler: ({ euros }) => `${euros} EUR`
})

const tools = [getWeather, searchFlights, bookHotel, exchangeRate, callMuseum, sendFax, setBudget]
const Agent = Engine.layer({ tools, concurrency: 4, unknownTool: "feedback" }).pipe(Layer.provide(TravelModel.layer))

const wish = "Plan three days in Oslo for me, for less than 600 euros."

Screen.main(Effect.provide(ChatView.show(wish, Allm.stream(wish)), Agent))
