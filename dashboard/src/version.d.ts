/** Of the package, set by the build. */
declare const __VERSION__: string
