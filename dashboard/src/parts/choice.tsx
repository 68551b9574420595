/** One of a few, by name. */
export function Choice<Value extends string>(props: {
  name: string
  value: Value
  /** What may be chosen, and how it is called. */
  of: readonly (readonly [Value, string])[]
  change: (value: Value) => void
}) {
  return (
    <label>
      {props.name}
      <select
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
    </label>
  )
}
