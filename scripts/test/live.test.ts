import { LLMock } from "@copilotkit/aimock"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const variables = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"]

/** Without the keys that whoever runs the tests may have. */
const live = (args: ReadonlyArray<string>, keys: { readonly [name: string]: string } = {}) =>
  new Promise<{ readonly code: unknown; readonly output: string }>((resolve) => {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !variables.includes(name)))
    const script = join(root, "scripts/live.mjs")
    execFile(
      process.execPath,
      [script, ...args],
      { cwd: root, env: { ...env, ...keys } },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, output: `${stdout}${stderr}` })
    )
  })

describe.concurrent("npm run live", () => {
  const server = new LLMock({ port: 0, logLevel: "silent" })

  beforeAll(async () => {
    const toolCalls = [{ id: "call_1", name: "get_weather", arguments: JSON.stringify({ city: "Oslo" }) }]
    server.on({ userMessage: "How is the weather in Oslo?", hasToolResult: false }, { toolCalls })
    server.on({ userMessage: "How is the weather in Oslo?", hasToolResult: true }, { content: "As clear as can be." })
    await server.start()
  })
  afterAll(() => server.stop())

  it("says that it asked nobody where there is no key", async () => {
    const { code, output } = await live([], { OPENAI_API_KEY: "  " })
    assert.strictEqual(code, 0)
    for (const name of variables) assert.include(output, name)
    assert.include(output, "no model was asked")
  })

  it("fails where a provider that is named has no key", async () => {
    const { code, output } = await live(["google"])
    assert.strictEqual(code, 1)
    assert.include(output, "google: not asked, there is no GOOGLE_API_KEY and no GEMINI_API_KEY")
  })

  it("knows its providers and examples", async () => {
    const { code, output } = await live(["gogle", "03-single-tool"])
    assert.strictEqual(code, 2)
    assert.include(output, "There is no gogle.")
  })

  const places = [
    ["openai", "OPENAI_API_KEY", "/v1"],
    ["openai-chat", "OPENAI_API_KEY", "/v1"],
    ["anthropic", "ANTHROPIC_API_KEY", ""],
    ["google", "GEMINI_API_KEY", "/v1beta"]
  ] as const
  for (const [provider, variable, path] of places) {
    it(`runs an example on ${provider}`, async () => {
      const { code, output } = await live([provider, "03-single-tool"], {
        [variable]: "a key of mine",
        ALLM_BASE_URL: `${server.url}${path}`,
        ALLM_MODEL: "a-model"
      })
      assert.strictEqual(code, 0, output)
      assert.include(output, `${provider} a-model: 3 messages, 1 tools`)
      assert.include(output, "assistant: As clear as can be.")
      assert.include(output, `ok     ${provider} 03-single-tool`)
      assert.notInclude(output, "a key of mine")
    })
  }
})
