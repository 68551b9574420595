/** Of the package, set by the build. */
declare const __VERSION__: string
/** Of the strings, set by the build. */
declare const __LANGUAGE__: string
