/** The answer as a typed value. One that does not fit is a typed error, or the model may mend it once. */
import { Allm, Fake } from "@allm/core"
import { Console, Effect, Schema } from "effect"

const City = Schema.Struct({
  name: Schema.String,
  founded: Schema.Int,
  twin: Schema.optional(Schema.String)
})

const answers = (...texts: ReadonlyArray<string>) =>
  Fake.engine({ scripts: texts.map((text) => [Fake.text(text), Fake.finish("stop")]) })

const wrong = `{"name":"Oslo","founded":"long ago"}`
const right = `{"name":"Oslo","founded":1048}`

const ask = Allm.object("The capital of Norway?", { schema: City })
const askWithCare = Allm.object("The capital of Norway?", { schema: City, correct: true })

const program = Effect.gen(function*() {
  // `value` is a City: { name: string, founded: number, twin?: string }
  const { value } = yield* Effect.provide(ask, answers(right))
  yield* Console.log(`${value.name}, founded in ${value.founded}`)

  yield* ask.pipe(
    Effect.catchTag("InvalidObject", ({ message, text }) => Console.log(`${message}\nit said ${text}`)),
    Effect.provide(answers(wrong))
  )

  const mended = yield* Effect.provide(askWithCare, answers(wrong, right))
  yield* Console.log(`${mended.value.name}, after ${mended.result.steps.length} turns`)
})

Effect.runPromise(program)
