declare module '*.bin?url&inline' {
  const uri: string
  export default uri
}
