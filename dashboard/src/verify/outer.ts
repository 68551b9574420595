/**
 * The outer step: from the state before a round and the mean of its accepted sums to the state after it. FedAvgM is by
 * Hsu et al. 2019, FedAdam by Reddi et al. 2021 (algorithm 2), Nesterov's form DiLoCo's by Douillard et al. 2023.
 *
 * It is the function of `client/consilium_client/models/outer.py`: vitest and pytest hold both to `tests/vectors/outer.json`.
 * Each operation is rounded to float32, in the same order. A double has more than twice a float32's digits, so rounding
 * its sum, product, quotient or root again gives the float32 result.
 */
export type OuterSpec =
  | { name: 'mean' }
  | { name: 'momentum'; learning_rate: number; momentum: number }
  | { name: 'adam'; learning_rate: number; beta1: number; beta2: number; tau: number }
  | { name: 'nesterov'; learning_rate: number; momentum: number; fading: number }
  | { name: 'sign'; learning_rate: number }

/** The base model, (p,), the optimiser's moments, each (p,), and the rounds so far. None is written to. */
export interface OuterState {
  model: Float32Array
  moments: readonly Float32Array[]
  rounds: number
}

const float = Math.fround

/** The state before the first round, from the initial parameters (p,). */
export function begin(spec: OuterSpec, initial: Float32Array): OuterState {
  if (spec.name === 'mean' || spec.name === 'sign') return { model: initial, moments: [], rounds: 0 }
  const first = new Float32Array(initial.length)
  if (spec.name !== 'adam') return { model: initial, moments: [first], rounds: 0 }
  return { model: initial, moments: [first, first.map(() => float(spec.tau) * float(spec.tau))], rounds: 0 }
}

/** The state after a round whose accepted sums have this mean update, (p,). */
export function after(spec: OuterSpec, state: OuterState, update: Float64Array): OuterState {
  const model = state.model.slice()
  const moments = state.moments.map((moment) => moment.slice())
  const move = moveOf(spec, state.rounds)
  update.forEach((mean, at) => (model[at] = (model[at] ?? 0) + move(float(mean), moments, at)))
  return { model, moments, rounds: state.rounds + 1 }
}

/** Writes the moments of one parameter, and returns the step of the model's value. An array rounds its values. */
function moveOf(spec: OuterSpec, rounds: number): (update: number, moments: Float32Array[], at: number) => number {
  const grown = (moment: Float32Array | undefined, at: number, decay: number, by: number) => {
    if (!moment) throw new RangeError(`the state has no moments for the outer step ${spec.name}`)
    return (moment[at] = float(float((moment[at] ?? 0) * decay) + by))
  }
  if (spec.name === 'mean') return (update) => update
  const rate = float(spec.learning_rate)
  if (spec.name === 'momentum') {
    const decay = float(spec.momentum)
    return (update, [velocity], at) => float(rate * grown(velocity, at, decay, update))
  }
  if (spec.name === 'nesterov') {
    let faded = spec.momentum
    for (let round = 0; round < rounds; round++) faded *= spec.fading
    const decay = float(faded)
    return (update, [velocity], at) => {
      const ahead = float(decay * grown(velocity, at, decay, update))
      return float(rate * (decay ? float(ahead + update) : update))
    }
  }
  if (spec.name === 'sign') return (update) => float(rate * Math.sign(update))
  const [first, firstRest] = [float(spec.beta1), float(1 - spec.beta1)]
  const [second, secondRest] = [float(spec.beta2), float(1 - spec.beta2)]
  const tau = float(spec.tau)
  return (update, [means, squares], at) => {
    const mean = grown(means, at, first, float(firstRest * update))
    const square = grown(squares, at, second, float(secondRest * float(update * update)))
    return float(float(rate * mean) / float(float(Math.sqrt(square)) + tau))
  }
}
