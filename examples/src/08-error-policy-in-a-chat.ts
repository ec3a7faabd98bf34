/** A failure the model can mend goes to the model; one it cannot mend ends the chat. */
import { Allm, Fake, OnToolError, Tool } from "@allm/core"
import { Console, Effect, Logger, LogLevel, Schema } from "effect"

const bookHotel = Tool.make("book_hotel", {
  description: "Books a room",
  parameters: { hotel: Schema.String, nights: Schema.Int },
  handler: ({ hotel, nights }) => {
    switch (hotel) {
      case "Grand":
        return Effect.fail("no rooms left")
      case "Ritz":
        return Effect.die(new Error("no route to db.internal"))
      default:
        return Effect.succeed(`${nights} nights at the ${hotel}`)
    }
  }
})

const book = (id: string, args: { readonly hotel: string; readonly nights: number | string }) => [
  Fake.toolCall({ id, name: "book_hotel", arguments: args }),
  Fake.finish("tool_calls")
]

const chat = (...hotels: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const result = yield* Allm.chat("Book three nights", {
      tools: [bookHotel],
      // A crash is a bug of ours. Anything else is word to the model.
      onToolError: (_call, error) => error._tag === "HandlerRaised" ? OnToolError.halt : OnToolError.continue()
    })
    for (const { content } of result.steps.flatMap((step) => step.toolResults)) yield* Console.log(`  ${content}`)
    yield* Console.log(`  ${result.haltedReason}: ${result.finalResponse.outputText || "(no answer)"}`)
  }).pipe(
    Effect.provide(Fake.engine({
      scripts: [
        book("call_0", { hotel: "Grand", nights: "three" }),
        ...hotels.map((hotel, index) => book(`call_${index + 1}`, { hotel, nights: 3 })),
        [Fake.text("Your room is booked."), Fake.finish("stop")]
      ]
    }))
  )

const program = Effect.gen(function*() {
  yield* Console.log("the model corrects itself:")
  yield* chat("Grand", "Plaza")
  yield* Console.log("a tool crashes:")
  yield* chat("Ritz")
})

// The crash is also a warning in the log, with its cause. It would only blur the picture here.
Effect.runPromise(Logger.withMinimumLogLevel(program, LogLevel.Error))
