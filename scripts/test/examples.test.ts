import { LLMock } from "@copilotkit/aimock"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { find } from "../examples.mjs"

const root = fileURLToPath(new URL("../..", import.meta.url))
const keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"]
const variables = [...keys, "ALLM_MODEL", "ALLM_BASE_URL"]

/** Without the keys and choices that whoever runs the tests may have. */
const script = (name: string, args: ReadonlyArray<string>, given: { readonly [name: string]: string } = {}) =>
  new Promise<{ readonly code: unknown; readonly output: string }>((resolve) => {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !variables.includes(name)))
    execFile(
      process.execPath,
      [join(root, `scripts/${name}.mjs`), ...args],
      { cwd: root, env: { ...env, ...given } },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, output: `${stdout}${stderr}` })
    )
  })

const server = new LLMock({ port: 0, logLevel: "silent" })

beforeAll(async () => {
  const toolCalls = [{ id: "call_1", name: "get_weather", arguments: JSON.stringify({ city: "Oslo" }) }]
  server.on({ userMessage: "How is the weather in Oslo?", hasToolResult: false }, { toolCalls })
  server.on({ userMessage: "How is the weather in Oslo?", hasToolResult: true }, { content: "As clear as can be." })
  await server.start()
})
afterAll(() => server.stop())

const places = [
  ["openai", "OPENAI_API_KEY", "/v1"],
  ["openai-chat", "OPENAI_API_KEY", "/v1"],
  ["anthropic", "ANTHROPIC_API_KEY", ""],
  ["google", "GEMINI_API_KEY", "/v1beta"]
] as const

describe.concurrent("npm run live", () => {
  const live = (args: ReadonlyArray<string>, given?: { readonly [name: string]: string }) => script("live", args, given)

  it("says that it asked nobody where there is no key", async () => {
    const { code, output } = await live([], { OPENAI_API_KEY: "  " })
    assert.strictEqual(code, 0)
    for (const name of keys) assert.include(output, name)
    assert.include(output, "no model was asked")
  })

  it("fails where a provider that is named has no key", async () => {
    const { code, output } = await live(["google"])
    assert.strictEqual(code, 2)
    assert.strictEqual(output, "google needs a key: set GOOGLE_API_KEY or GEMINI_API_KEY.\n")
  })

  it("knows its providers and examples", async () => {
    const { code, output } = await live(["gogle", "03-single-tool"])
    assert.strictEqual(code, 2)
    assert.include(output, "gogle names no provider, and not one example.")
  })

  it("runs what is named by arguments", async () => {
    const given = { OPENAI_API_KEY: "a key of mine", ALLM_BASE_URL: `${server.url}/v1` }
    const { code, output } = await live(["openai/model-1", "openai-chat/group/model-2", "single"], given)
    assert.strictEqual(code, 0, output)
    assert.include(output, "ok     openai/model-1 03-single-tool")
    assert.include(output, "ok     openai-chat/group/model-2 03-single-tool")
    assert.include(output, "openai-chat group/model-2: 3 messages, 1 tools")
  })
})

describe.concurrent("npm run example", () => {
  const example = (args: ReadonlyArray<string>, given?: { readonly [name: string]: string }) =>
    script("example", args, given)

  it("lists the examples, each with its idea in one line", async () => {
    const { code, output } = await example([])
    const [list = ""] = output.split("\n\n")
    assert.strictEqual(code, 0)
    assert.match(output, /^01-plain-text +Ask a model, and read its answer\.\n/)
    for (const line of list.split("\n")) assert.match(line, /^\d\d-\S+ +[A-Z].{10,}\.$/)
  })

  it("runs the scripted model without a key", async () => {
    const { code, output } = await example(["3"])
    assert.strictEqual(code, 0, output)
    assert.include(output, "assistant: Clear sky, 21 degrees.")
  })

  it("finds one by its number, its name or a part of one", () => {
    for (const text of ["20", "20-per-tool-manual", "20-per-tool-manual.ts", "per-tool-manual"]) {
      assert.deepStrictEqual(find(text), ["20-per-tool-manual"])
    }
    for (const text of ["3", "03", "Single"]) assert.deepStrictEqual(find(text), ["03-single-tool"])
  })

  it("says which there are", async () => {
    const none = await example(["travel"])
    assert.strictEqual(none.code, 2)
    assert.match(none.output, /^There is no example travel\. There are:\n\n01-plain-text /)

    const many = await example(["manual"])
    assert.strictEqual(many.code, 2)
    assert.match(many.output, /^manual may be one of:\n\n19-manual-round-trip .+\n20-per-tool-manual .+\n24-/)
  })

  it("says in one sentence why a model cannot be asked", async () => {
    const unknown = await example(["01"], { ALLM_MODEL: "gogle/gemini" })
    assert.strictEqual(unknown.code, 2)
    assert.match(
      unknown.output,
      /^There is no provider "gogle"; .+ openai, openai-chat, anthropic, google, ollama\.\n$/
    )

    const locked = await example(["01"], { ALLM_MODEL: "anthropic/claude", ANTHROPIC_API_KEY: "" })
    assert.strictEqual(locked.code, 2)
    assert.strictEqual(locked.output, "anthropic needs a key: set ANTHROPIC_API_KEY.\n")
  })

  for (const [provider, variable, path] of places) {
    it(`asks ${provider} when ALLM_MODEL says so`, async () => {
      const { code, output } = await example(["03"], {
        [variable]: "a key of mine",
        ALLM_BASE_URL: `${server.url}${path}`,
        ALLM_MODEL: `${provider}/a-model`
      })
      assert.strictEqual(code, 0, output)
      assert.include(output, `${provider} a-model: 3 messages, 1 tools`)
      assert.include(output, "assistant: As clear as can be.")
      assert.notInclude(output, "a key of mine")
    })
  }

  it("asks a server of one's own without a key", async () => {
    const place = { ALLM_BASE_URL: `${server.url}/v1`, ALLM_MODEL: "ollama" }
    const { code, output } = await example(["03"], place)
    assert.strictEqual(code, 0, output)
    assert.include(output, "ollama llama3.2: 3 messages, 1 tools")
  })
})
