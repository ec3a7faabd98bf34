/** Read an answer word by word, as it comes. */
import { Allm, Fake } from "@allm/core"
import { Console, Effect, Option, Stream } from "effect"

const Model = Fake.engine({
  delay: "20 millis",
  script: [
    Fake.text("The fjord"),
    Fake.text(" is still,\n"),
    Fake.text("no ship"),
    Fake.text(" since noon."),
    Fake.finish("stop")
  ]
})

const program = Allm.stream("Two short lines about a fjord").pipe(
  Stream.filterMap((event) => event._tag === "TextDelta" ? Option.some(event.delta) : Option.none()),
  Stream.runForEach((words) => Console.log(JSON.stringify(words)))
)

Effect.runPromise(Effect.provide(program, Model))
