import { assert, describe, it } from "vitest"
import { countDocgen, countTstyche, countVitest } from "../counts.mjs"

const report = (tests: ReadonlyArray<string>, status = "passed") =>
  JSON.stringify({
    numPassedTests: tests.filter((test) => test === "passed").length,
    numFailedTests: tests.filter((test) => test === "failed").length,
    testResults: [{ status, assertionResults: tests.map((test) => ({ status: test })) }]
  })

describe("counts", () => {
  it("vitest: passed and failed tests", () => {
    assert.deepStrictEqual(countVitest(report(["passed", "passed"]), 0), { passed: 2, failed: 0 })
    assert.deepStrictEqual(countVitest(report(["passed", "failed"], "failed"), 1), { passed: 1, failed: 1 })
  })

  it("vitest: a crash, no tests, a file that does not load and an error outside a test each fail", () => {
    assert.deepStrictEqual(countVitest("", 1), { passed: 0, failed: 1 })
    assert.deepStrictEqual(countVitest("{", 0), { passed: 0, failed: 1 })
    assert.deepStrictEqual(countVitest(report([]), 0), { passed: 0, failed: 1 })
    assert.deepStrictEqual(countVitest(report([], "failed"), 1), { passed: 0, failed: 1 })
    assert.deepStrictEqual(countVitest(report(["passed"]), 1), { passed: 1, failed: 1 })
  })

  it("tstyche: the line of the tests, not that of the assertions", () => {
    const output = "Test files:   1 failed, 1 total\nTests:        1 failed, 3 passed, 4 total\nAssertions:   9 passed"
    assert.deepStrictEqual(countTstyche(output, 1), { passed: 3, failed: 1 })
    assert.deepStrictEqual(countTstyche("", 0), { passed: 0, failed: 1 })
    assert.deepStrictEqual(countTstyche("Tests: 3 passed, 3 total", 1), { passed: 3, failed: 1 })
  })

  it("docgen: all examples, or one failure", () => {
    assert.deepStrictEqual(countDocgen("INFO: 12 example(s) found", 0), { passed: 12, failed: 0 })
    assert.deepStrictEqual(countDocgen("INFO: 12 example(s) found", 1), { passed: 0, failed: 1 })
    assert.deepStrictEqual(countDocgen("No examples found.", 0), { passed: 0, failed: 0 })
  })
})
