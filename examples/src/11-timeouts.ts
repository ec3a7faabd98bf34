/** Limits hold whatever a tool does, and need no waiting to be tried: on a `TestClock` minutes pass in no time. */
import { Allm, Fake, Tool } from "@allm/core"
import { Console, Effect, Fiber, Logger, TestClock, TestContext } from "effect"

const callMuseum = Tool.make("call_museum", {
  description: "Never answers",
  timeout: "2 minutes",
  handler: () => Effect.onInterrupt(Effect.never, () => Console.log("  call_museum hangs up"))
})

const sendFax = Tool.make("send_fax", {
  description: "Never answers, and cannot be interrupted",
  handler: () => Effect.uninterruptible(Effect.promise(() => new Promise<string>(() => {})))
})

const Assistant = Fake.engine({
  tools: [callMuseum, sendFax],
  // Of every tool that has none of its own.
  toolTimeout: "5 minutes",
  scripts: [
    [
      Fake.toolCall({ id: "call_0", name: "call_museum" }),
      Fake.toolCall({ id: "call_1", name: "send_fax" }),
      Fake.finish("tool_calls")
    ],
    [Fake.text("Nobody answers. Just go there."), Fake.finish("stop")]
  ]
})

const program = Effect.gen(function*() {
  const chat = yield* Effect.fork(Allm.chat("When does the museum open?"))

  yield* Console.log("two minutes later")
  yield* TestClock.adjust("2 minutes")
  yield* Console.log("five minutes later")
  yield* TestClock.adjust("3 minutes")

  const { finalResponse, steps } = yield* Fiber.join(chat)
  for (const { content } of steps.flatMap((step) => step.toolResults)) yield* Console.log(content)
  yield* Console.log(finalResponse.outputText)
})

const Operators = Logger.replace(Logger.defaultLogger, Logger.make(({ message }) => console.log(`  log: ${message}`)))

Effect.runPromise(program.pipe(Effect.provide([Assistant, Operators, TestContext.TestContext])))
