/** Ask a model, and read its answer. */
import { Allm, Fake } from "@allm/core"
import { Console, Effect } from "effect"

// Stands in for a provider: it says what it is told to say, offline.
const Model = Fake.engine({
  script: [Fake.text("Oslo."), Fake.usage({ inputTokens: 14, outputTokens: 2 }), Fake.finish("stop")]
})

const program = Effect.gen(function*() {
  const { finalResponse, usage } = yield* Allm.chat("What is the capital of Norway? One word.")

  yield* Console.log(finalResponse.outputText)
  yield* Console.log(`${usage.inputTokens} tokens in, ${usage.outputTokens} out`)
})

Effect.runPromise(Effect.provide(program, Model))
