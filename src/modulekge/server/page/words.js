// Labels as people write them.

/** A label as words: "_has_capital" as "has capital". */
export function words(label) {
  return label.replaceAll("_", " ").trim() || label;
}
