# Fits every table of a folder with packages of R; compare.py writes the tables and reads the answers.
# An answer is a line: package, table, seconds, number of lines, their coefficients (intercept first).
folder <- commandArgs(trailingOnly = TRUE)[1]
here <- function(package) suppressMessages(requireNamespace(package, quietly = TRUE))

ltsreg <- function(x, y, k) {
  fit <- robustbase::ltsReg(x, y, mcd = FALSE)
  list(t(fit$coefficients), which(fit$lts.wt == 0))
}
flexmix_bic <- function(x, y, k) {
  fits <- flexmix::initFlexmix(y ~ x, k = 1:4, nrep = 5, verbose = FALSE)
  fit <- if (is(fits, "stepFlexmix")) flexmix::getModel(fits, "BIC") else fits
  found <- flexmix::parameters(fit)
  list(t(found[rownames(found) != "sigma", , drop = FALSE]), integer(0))
}
mixtools_em <- function(x, y, k) {
  capture.output(fit <- mixtools::regmixEM(y, x, k = max(k, 2)))
  list(t(fit$beta), integer(0))
}

packages <- list(robustbase = ltsreg, flexmix = flexmix_bic, mixtools = mixtools_em)
for (package in Filter(here, names(packages))) {
  suppressMessages(library(package, character.only = TRUE))
  cat("version", package, format(packageVersion(package)), "\n")
  for (file in list.files(folder, pattern = "csv$")) {
    table <- as.matrix(read.csv(file.path(folder, file), header = FALSE))
    y <- table[, 2]
    x <- table[, -(1:2), drop = FALSE]
    set.seed(1)
    # A fit that fails has found nothing.
    found <- NULL
    time <- system.time(found <- tryCatch(
      suppressWarnings(packages[[package]](x, y, table[1, 1])),
      error = function(e) NULL
    ))
    lines <- if (is.null(found) || anyNA(found[[1]])) matrix(0, 0, ncol(x) + 1) else found[[1]]
    cat(package, sub(".csv", "", file, fixed = TRUE), sum(time[c("user.self", "sys.self")]), nrow(lines),
        sprintf("%.17g", t(lines)), "outliers", found[[2]] - 1, "\n")
  }
}
