// Which state of a sale operators are shown.

/** Of one that buyers do not see, neither its window nor its pause says anything: it is a draft. */
export const stateOf = (sale) => (sale.published === false && sale.state !== "ended" ? "draft" : sale.state);
