import { Cli } from "@allm/cli"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { type Console, Effect } from "effect"

/** Runs a command line, and collects what it prints. */
const allm = (...args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const printed: Array<string> = []
    const told: Array<string> = []
    const console = yield* Effect.console
    const code = yield* Cli.run(["node", "allm", ...args]).pipe(
      Effect.withConsole(
        {
          ...console,
          log: (...values) => Effect.sync(() => void printed.push(values.join(" "))),
          error: (...values) => Effect.sync(() => void told.push(values.join(" ")))
        } satisfies Console.Console
      ),
      Effect.provide(NodeContext.layer)
    )
    return { code, printed: printed.join("\n"), told: told.join("\n") }
  })

describe("run", () => {
  it.effect("prints the version of the package", () =>
    Effect.gen(function*() {
      const { code, printed } = yield* allm("--version")

      assert.strictEqual(code, 0)
      assert.match(printed, /^\d+\.\d+\.\d+/)
    }))

  it.effect("describes itself, without colours where there is no terminal", () =>
    Effect.gen(function*() {
      const { code, printed } = yield* allm("--help")

      assert.strictEqual(code, 0)
      for (const name of ["chat", "run", "sessions", "replay"]) {
        assert.match(printed, new RegExp(`^  ${name} +\\S`, "m"))
      }
      if (!process.stdout.isTTY) assert.notInclude(printed, "\u001b")
    }))

  it.effect("gives 2 for what it does not understand, and says what there is instead", () =>
    Effect.gen(function*() {
      const command = yield* allm("talk")
      assert.strictEqual(command.code, 2)
      assert.include(command.told, "use one of 'chat', 'run', 'sessions', 'replay'")

      const option = yield* allm("chat", "--modle", "demo")
      assert.strictEqual(option.code, 2)
      assert.strictEqual(option.told, "allm: There is no option --modle. See them with: allm chat --help")

      const root = yield* allm("chat", "--root", "/no/such/place")
      assert.deepStrictEqual([root.code, root.told], [2, "allm: --root /no/such/place is no directory."])

      const model = yield* allm("chat", "--model", "nobody/nothing")
      assert.strictEqual(model.code, 2)
      assert.match(model.told, /^allm: There is no provider "nobody"; there are /)
    }))
})
