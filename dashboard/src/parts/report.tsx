/** A task's report: its model's worth on the operator's rows, on those of the nodes that share figures, and in parts. */
import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '../api/client'
import { report as reportOf } from '../api/queries'
import { shortened } from '../lib/accounts'
import { formatFixed, formatWhole } from '../lib/amounts'
import { isKey } from '../lib/fields'
import { axisOf, hasModel, type Scale } from '../lib/metrics'
import { barsOf, metricsShown, shownMeasure, type Bar } from '../lib/report'
import * as say from '../strings'
import { Account, Card } from './basics'
import { CalibrationChart } from './charts'
import { Table } from './table'

const words = say.report
type Of<Name extends keyof Schemas> = Schemas[Name]
type Part = { whose: string } & Pick<
  Of<'EvaluationReport'>,
  'subgroups' | 'calibration' | 'importance' | 'importance_by'
>
const METRICS_SHOWN = 3
const COLUMNS_SHOWN = 20
const title = (metric: string) => (isKey(metric, say.quality.metric) ? say.quality.metric[metric] : metric)

export default function Report({ task }: { task: Of<'Task'> }) {
  const { data } = useQuery({ ...reportOf(task.task), enabled: hasModel(task) })
  const [found] = data?.items ?? []
  if (!found) return null
  const parts = partsOf(found)
  return (
    <Card title={words.title} means={words.means(found.round)}>
      {found.all_rows ? (
        <Sites of={found} whole={found.all_rows} scale={task.asked} />
      ) : (
        <p className="soft">{words.noRows}</p>
      )}
      {found.nodes.length > 0 && <Nodes of={found.nodes} scale={task.asked} />}
      <Calibration of={parts} />
      <Subgroups of={parts} scale={task.asked} />
      {parts
        .filter((one) => one.importance.length > 0)
        .map((one) => (
          <Importance key={one.whose} of={one} />
        ))}
    </Card>
  )
}

/** The operator's rows first, then each node's that shares figures. */
function partsOf(found: Of<'EvaluationReport'>): Part[] {
  const shared = found.nodes.flatMap(({ report }) =>
    report ? [{ whose: `${say.role[report.role]} ${shortened(report.node)}`, ...report.found }] : [],
  )
  return [...(found.all_rows ? [{ whose: words.operator, ...found }] : []), ...shared]
}

interface Scaled {
  scale: Scale | null
}

function Sites({ of, whole, scale }: Scaled & { of: Of<'EvaluationReport'>; whole: Of<'Group'> }) {
  return (
    <>
      <p>{words.rows(whole.rows)}</p>
      <Groups caption={words.sites} by={words.site} of={[...of.sites, whole]} scale={scale} />
    </>
  )
}

function Groups({ caption, by, of, scale }: Scaled & { caption: string; by: string; of: readonly Of<'Group'>[] }) {
  return (
    <Table
      caption={caption}
      rows={of}
      keyOf={(one) => one.name ?? ''}
      columns={[
        { text: by, of: (one) => <bdi>{one.name ?? words.all}</bdi> },
        { number: say.columns.rows, of: (one) => formatWhole(one.rows) },
        ...metricsShown(
          of.map((one) => one.measures),
          METRICS_SHOWN,
        ).map((metric) => ({
          number: axisOf(metric, scale),
          of: (one: Of<'Group'>) => shownMeasure(metric, one.measures[metric], scale),
        })),
      ]}
    />
  )
}

function Nodes({ of, scale }: Scaled & { of: readonly Of<'NodeEntry'>[] }) {
  const measures = of.flatMap(({ report }) => (report ? [report.found.all_rows.measures] : []))
  const metrics = metricsShown(measures, METRICS_SHOWN)
  const [first] = metrics
  const hasAlone = of.some(({ report }) => report?.alone)
  return (
    <>
      <h3>{words.nodes}</h3>
      <p className="soft small">{words.nodesMean}</p>
      <Table
        caption={words.nodes}
        rows={of}
        keyOf={(one) => `${one.role}${one.node}`}
        columns={[
          {
            text: words.node,
            of: ({ node, role, report }) => (
              <>
                {say.role[role]}
                {report ? `, ${words.signed} ` : ' '}
                <Account of={node} as={role} />
              </>
            ),
          },
          {
            number: say.columns.rows,
            of: ({ report }) => (report ? formatWhole(report.found.all_rows.rows) : words.notShared),
          },
          ...metrics.map((metric) => ({
            number: axisOf(metric, scale),
            of: ({ report }: Of<'NodeEntry'>) => shownMeasure(metric, report?.found.all_rows.measures[metric], scale),
          })),
          ...(first
            ? [
                {
                  number: words.start(axisOf(first, scale)),
                  of: ({ report }: Of<'NodeEntry'>) => shownMeasure(first, report?.start[first], scale),
                },
              ]
            : []),
          ...(first && hasAlone
            ? [
                {
                  number: words.alone(axisOf(first, scale)),
                  of: ({ report }: Of<'NodeEntry'>) => shownMeasure(first, report?.alone?.[first], scale),
                },
              ]
            : []),
        ]}
      />
    </>
  )
}

function Calibration({ of }: { of: readonly Part[] }) {
  const named = of.flatMap(({ whose, calibration }) =>
    calibration.map((one) => ({ ...one, class_name: of.length > 1 ? `${one.class_name}, ${whose}` : one.class_name })),
  )
  if (!named.length) return null
  return (
    <>
      <h3>{words.calibration}</h3>
      <p className="soft small">{words.calibrationMeans}</p>
      <CalibrationChart of={named} />
    </>
  )
}

function Subgroups({ of, scale }: Scaled & { of: readonly Part[] }) {
  const groups = of.flatMap(({ whose, subgroups }) =>
    subgroups.map((one) => ({ ...one, name: of.length > 1 ? `${one.name ?? ''}, ${whose}` : one.name })),
  )
  if (!groups.length) return null
  return (
    <>
      <h3>{words.subgroups}</h3>
      <Groups caption={words.subgroups} by={words.subgroup} of={groups} scale={scale} />
    </>
  )
}

function Importance({ of: { whose, importance, importance_by: by } }: { of: Part }) {
  const shown = importance.slice(0, COLUMNS_SHOWN)
  const bars = barsOf(shown)
  const rows = shown.map((one, index) => ({ ...one, bar: bars[index] }))
  return (
    <>
      <h3>{words.importance(whose)}</h3>
      <p className="soft small">{words.importanceMeans(title(by ?? ''))}</p>
      <Table
        caption={words.importance(whose)}
        rows={rows}
        keyOf={(one) => one.column}
        columns={[
          { text: words.column, of: (one) => <bdi>{one.column}</bdi> },
          {
            number: words.loss,
            of: (one) => (
              <>
                {one.bar && <BarOf bar={one.bar} />} {formatFixed(one.mean, 3)}
              </>
            ),
          },
          { number: words.range, of: (one) => words.to(formatFixed(one.low, 3), formatFixed(one.high, 3)) },
        ]}
      />
    </>
  )
}

function BarOf({ bar }: { bar: Bar }) {
  return (
    <svg
      className="bar line-1"
      width="120"
      height="12"
      viewBox="0 0 100 10"
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <rect x={bar.left} width={bar.width} y="1" height="8" />
      <line x1={bar.from} x2={bar.to} y1="5" y2="5" />
    </svg>
  )
}
