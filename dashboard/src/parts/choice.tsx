/** Choices of one option among a few, each with its name. */
interface Choosing<Value extends string> {
  name: string
  value: Value
  of: readonly (readonly [Value, string])[]
  change: (value: Value) => void
}

/** `isBare`: the name is read aloud, but not shown. */
export function Choice<Value extends string>(props: Choosing<Value> & { isBare?: boolean }) {
  const select = (
    <select
      aria-label={props.isBare ? props.name : undefined}
      value={props.value}
      onChange={(event) => {
        const chosen = props.of.find(([value]) => value === event.target.value)
        if (chosen) props.change(chosen[0])
      }}
    >
      {props.of.map(([value, shown]) => (
        <option key={value} value={value}>
          {shown}
        </option>
      ))}
    </select>
  )
  if (props.isBare) return select
  return (
    <label>
      {props.name}
      {select}
    </label>
  )
}

/** All options in sight. */
export function Radios<Value extends string>({ name, value, of, change }: Choosing<Value>) {
  return (
    <fieldset className="choices">
      <legend>{name}</legend>
      {of.map(([one, shown]) => (
        <label key={one}>
          <input type="radio" name={name} checked={one === value} onChange={() => change(one)} /> {shown}
        </label>
      ))}
    </fieldset>
  )
}
