/** The ceremony's points for tests, as the page gets them. */
import uri from '../src/generated/ceremony.bin?url&inline'
import { parseCeremony } from '../src/verify/kzg'

export const RAW = new Uint8Array(await (await fetch(uri)).arrayBuffer())
export const ceremony = parseCeremony(RAW)
